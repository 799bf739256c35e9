// The input of the simulation: the setup of a run, and the time of each operation.
//
//   mr::detail::pipeline_model m = mr::detail::model_of(window);      // the recorded run
//   m.workers = 8;
//   mr::detail::simulated then = mr::detail::simulate(m);             // report/simulate/simulation.hpp
//
// I/O threads read `samples_per_read` samples at a time, within `read_ahead_bytes`. Workers render each sample into a
// row of `host_slots` batches. Copies are written to `device_slots` batches; if there are none, the step uses the host
// slots.
// Unit: times in nanoseconds, of a single read, a sample's work, a batch's copy and a batch's step.
// If all threads wait for the shard whose turn it is, only the readers whose work is used are modeled.
// Not modeled: serial stages on their own threads, and threads that share too few cores.
// Errors: none. Threads: a value.
#pragma once

#include <millrace/measure/values/flow_statistics.hpp>
#include <millrace/report/simulate/empirical_distribution.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The setup and the service times of a run.
struct pipeline_model {
  std::size_t io_threads = 4, workers = 4, host_slots = 4, device_slots = 0;
  std::size_t batch_samples = 64;
  std::size_t read_ahead_bytes = std::size_t{256} << 20;
  std::size_t samples_per_read = 1;
  double sample_bytes = 100'000;
  double batch_bytes = 0;      ///< bytes of one copy
  double contention = 0;       ///< slowdown of concurrent reads (measure/values/read_levels.hpp)
  double useful_share = 1;     ///< used share of the readers other than the awaited one (flow_statistics.hpp)
  empirical_distribution read_ns{}, unpack_ns{}, work_ns{}, copy_ns{}, step_ns{};
  std::vector<std::pair<std::string, double>> phases{};   ///< phases of the work: names and shares
  std::uint64_t warm_up_batches = 20, batches = 200;     ///< `batches` are measured, after the warm-up
  std::uint64_t seed = 1;
  bool with_timeline = false;

  /// Returns how many of `threads` I/O threads do work that is used.
  std::size_t useful_readers(std::size_t threads) const noexcept;
};

/// Returns the model of a recorded run. Shapes are those of the histograms, means those of the busy times. Unknown
/// contention of the reads counts as none.
pipeline_model model_of(const flow_statistics& f);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/report/simulate/impl/pipeline_model.inl>
#endif
