// Umbrella header for tuning. During the run, tuning finds the numbers of workers and concurrent reads that the
// training step needs. No other umbrella header includes this header.
//
//   #include <millrace/millrace.hpp>
//   #include <millrace/tuning.hpp>
//   mr::session run{std::move(flow), {.tuning = mr::tuning()}};
#pragma once

#include <millrace/tune/tuning.hpp>
