// Workers and reads, set while the run goes on to what the step needs. An umbrella: includes only; in no other one.
//
//   #include <millrace/millrace.hpp>
//   #include <millrace/tuning.hpp>
//   mr::session run{std::move(flow), {.tuning = mr::tuning()}};
#pragma once

#include <millrace/tune/tuning.hpp>
