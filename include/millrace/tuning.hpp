// Umbrella header for tuning, which adapts the number of workers and reads to the training step during the run. No
// other umbrella header includes this header.
//
//   #include <millrace/millrace.hpp>
//   #include <millrace/tuning.hpp>
//   mr::session run{std::move(flow), {.tuning = mr::tuning()}};
#pragma once

#include <millrace/tune/tuning.hpp>
