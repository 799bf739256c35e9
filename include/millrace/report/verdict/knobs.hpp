// Predicts what each setting would bring, by the limits, and what would limit the run then.
//
//   for (const mr::knob_gain& k : mr::gains_of(figures))
//     std::printf("%s: %+.0f %%, then %s\n", k.change.c_str(), 100 * k.gain, k.next.c_str());
//
// A change scales the limits that it touches (limits.hpp). Its gain is the lowest limit after the change / the lowest
// limit now - 1. It assumes that the run then reaches the same share of its lowest limit as now. The gain of deeper
// prefetch is the rest up to the lowest limit.
// `at_most`: the prediction assumes what one run cannot show, so it is an upper bound. If stages wait for each other in
// turns, the limits say little: simulated_gains() of report/simulate/what_if.hpp then predicts the same changes by
// replay.
// Errors: none; a run without figures gives no gains. Threads: a pure function.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/flow_figures.hpp>

#include <cstddef>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI {

/// Other settings for a recorded run; members that are not set stay as they were. A factor of 1 is no change:
/// storage_speed = 2 is twice as fast, step_time = 2 takes twice as long.
struct what_if_change {
  std::optional<std::size_t> workers{}, io_threads{}, batch{};
  std::optional<std::size_t> prefetch{};   ///< host slots
  double storage_speed = 1, work_time = 1, step_time = 1;   ///< factors
  double fixed_step_ns = 0;                ///< part of each step that does not depend on the batch size
};

/// The setting that a change turns.
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

/// Returns the work of `workers` workers relative to that of the present ones, as far as the cores limit it. Under a
/// quota more workers get no more time. On crowded cores each runnable thread gets about the same share of a core.
double processor_gain(const flow_figures& f, const stage_figures& work, std::size_t workers);

}  // namespace detail

/// Returns the predicted gain of each change; none for a run without figures.
std::vector<knob_gain> gains_of(const flow_figures& f);

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/verdict/impl/knobs.inl>
#endif
