// Adapts workers and reads to the step during the run. An umbrella: includes only; in no other one.
//
//   #include <millrace/millrace.hpp>
//   #include <millrace/tuning.hpp>
//   mr::session run{std::move(flow), {.tuning = mr::tuning()}};
#pragma once

#include <millrace/tune/tuning.hpp>
