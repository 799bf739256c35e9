// Predicts how the speed of a run changes with each setting. Each prediction contains the gain, and the name of the
// stage that limits the run after the change. The predictions are computed from the limits of the stages (limits.hpp).
//
//   for (const mr::knob_gain& k : mr::gains_of(statistics))
//     std::printf("%s: %+.0f %%, then %s\n", k.change.c_str(), 100 * k.gain, k.next.c_str());
//
// A change scales the limits that it affects. The gain is (lowest limit after the change) / (lowest limit now) - 1.
// Deeper prefetch affects no limit, but can raise the measured speed to the lowest limit. Therefore its gain is at most
// (lowest limit now) / (measured speed) - 1. If `at_most` is true, the gain is an upper bound.
// If stages alternate in waiting for each other, the run is slower than its lowest limit, and these gains are
// inaccurate. In that case, use simulated_gains() of report/simulate/what_if.hpp, which predicts the gains of the same
// changes by simulation.
// Errors: none; a run without measurements has no gains. Threads: the function is pure; any thread may call it.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/flow_statistics.hpp>

#include <cstddef>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI {

/// Other settings for a recorded run. Unset members and factors of 1 change nothing. With storage_speed = 2, storage is
/// twice as fast; with step_time = 2, a step is twice as long.
struct what_if_change {
  std::optional<std::size_t> workers{}, io_threads{}, batch{};
  std::optional<std::size_t> prefetch{};                    ///< number of host slots
  double storage_speed = 1, work_time = 1, step_time = 1;   ///< factors
  double fixed_step_ns = 0;   ///< the part of a step's time that does not depend on the batch size
};

/// The setting that a change modifies.
enum class knob { workers, io_threads, prefetch, batch, storage_speed, step, work };

/// The predicted gain of one change.
struct knob_gain {
  knob what = knob::workers;
  std::string change{};   ///< such as "4 -> 5 workers"
  double gain = 0;        ///< relative gain; 0.25 is a quarter more samples per second
  std::string next{};     ///< name of the lowest limit after the change
  bool at_most = false;   ///< whether the gain is an upper bound
  std::string remark{};
  what_if_change settings{};   ///< the same change, as settings for a simulation
};

namespace detail {

/// Returns the throughput of `workers` workers relative to the current throughput, within the limits of the cores.
/// If a CPU quota limits the workers, more workers do not increase the throughput.
double processor_gain(const flow_statistics& f, const stage_statistics& work, std::size_t workers);

}   // namespace detail

/// Returns the predicted gain of each change; empty for a run without measurements.
std::vector<knob_gain> gains_of(const flow_statistics& f);

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/verdict/impl/knobs.inl>
#endif
