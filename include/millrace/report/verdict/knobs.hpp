// Predicts the gain of each setting from the limits, and the limit after the change.
//
//   for (const mr::knob_gain& k : mr::gains_of(figures))
//     std::printf("%s: %+.0f %%, then %s\n", k.change.c_str(), 100 * k.gain, k.next.c_str());
//
// A change scales the limits that it affects (limits.hpp). Its gain is the lowest limit after the change / the lowest
// limit now - 1. It assumes that the run then reaches the same share of its lowest limit as now. The gain of deeper
// prefetch is the remainder up to the lowest limit.
// `at_most`: the prediction includes an assumption that one run cannot confirm, so it is an upper bound. If stages
// alternate in waiting for each other, the limits are inaccurate: simulated_gains() of report/simulate/what_if.hpp then
// predicts the same changes by replay.
// Errors: none; a run without measurements has no gains. Threads: a pure function.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/flow_statistics.hpp>

#include <cstddef>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI {

/// Other settings for a recorded run; unset members are unchanged. A factor of 1 is no change: storage_speed = 2 is
/// twice as fast, step_time = 2 is twice as long.
struct what_if_change {
  std::optional<std::size_t> workers{}, io_threads{}, batch{};
  std::optional<std::size_t> prefetch{};   ///< host slots
  double storage_speed = 1, work_time = 1, step_time = 1;   ///< factors
  double fixed_step_ns = 0;                ///< part of each step that does not depend on the batch size
};

/// The setting that a change modifies.
enum class knob { workers, io_threads, prefetch, batch, storage_speed, step, work };

/// The predicted gain of one change.
struct knob_gain {
  knob what = knob::workers;
  std::string change{};   ///< "4 -> 5 workers"
  double gain = 0;        ///< relative: 0.25 is a quarter more samples per second
  std::string next{};     ///< the limit that binds after the change
  bool at_most = false;   ///< the gain is an upper bound
  std::string remark{};
  what_if_change settings{};   ///< the same change, as settings for a replay
};

namespace detail {

/// Returns the work of `workers` workers relative to that of the present ones, within the limits of the cores. Under a
/// quota more workers get no more time. On crowded cores each runnable thread gets about the same share of a core.
double processor_gain(const flow_statistics& f, const stage_statistics& work, std::size_t workers);

}  // namespace detail

/// Returns the predicted gain of each change; none for a run without measurements.
std::vector<knob_gain> gains_of(const flow_statistics& f);

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/verdict/impl/knobs.inl>
#endif
