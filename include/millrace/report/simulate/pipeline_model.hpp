// The input of the simulation: the setup of a run, and the time of each operation.
//
//   mr::detail::pipeline_model m = mr::detail::model_of(window);      // the recorded run
//   m.workers = 8;
//   mr::detail::simulated then = mr::detail::simulate(m);             // report/simulate/simulation.hpp
//
// I/O threads read `samples_per_read` samples at a time, and at most `read_ahead_bytes` ahead. Workers render each
// sample into a row of a batch in one of `host_slots` slots. Copies are written to `device_slots` slots; if their
// number is 0, the training step uses the host slots.
// Unit: nanoseconds for each read, for the work on each sample, and for the copy and the step of each batch.
// Some readers may read shards whose samples are not needed yet. The model only contains readers whose work is used.
// The model excludes serial stages on separate threads, and the effects of threads that share too few cores.
// Errors: none. Threads: not synchronized.
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
  double batch_bytes = 0;      ///< size of a batch, which one copy transfers
  double contention = 0;       ///< slowdown of concurrent reads (measure/values/read_levels.hpp)
  double useful_share = 1;     ///< used share of the work of all readers except the first (flow_statistics.hpp)
  empirical_distribution read_ns{}, unpack_ns{}, work_ns{}, copy_ns{}, step_ns{};
  std::vector<std::pair<std::string, double>> phases{};   ///< phases of the work: names and shares
  std::uint64_t warm_up_batches = 20, batches = 200;     ///< `batches` batches are measured after the warm-up
  std::uint64_t seed = 1;
  bool with_timeline = false;

  /// Returns the number of I/O threads, out of `threads`, whose work is used.
  std::size_t useful_readers(std::size_t threads) const noexcept;
};

/// Returns the model of a recorded run. Each of its distributions has the shape of the recorded histogram and the mean
/// of the recorded times. If the contention of reads is unknown, the model has no contention.
pipeline_model model_of(const flow_statistics& f);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/report/simulate/impl/pipeline_model.inl>
#endif
