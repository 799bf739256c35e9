// What a session counts about itself.
//
//   mr::run_stats s = run.stats();       // any thread, any time
//   std::printf("%.1f %% of the time waited for data\n", 100 * s.data_wait_share());
#pragma once

#include <millrace/measure/event_counts.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Of one source of a mix.
struct source_count {
  std::string name{};
  std::uint64_t samples = 0;   ///< delivered to this rank
};

/// Counters since the start of the session.
struct run_stats {
  std::uint64_t batches = 0, samples = 0;   ///< delivered
  std::uint64_t wait_ns = 0;                ///< the trainer waited in next()
  std::uint64_t step_ns = 0;                ///< from a batch to the next call of next(); not between epochs
  std::uint64_t first_batch_ns = 0;         ///< from the start to the first batch; not in wait_ns
  std::uint64_t worker_busy_ns = 0;         ///< of all workers of the last segment together
  std::uint64_t dropped_last = 0;           ///< samples that epochs left out at their ends; 0 where not known
  std::uint64_t digest = 0;                 ///< b.position().digest of the last batch; 0 where there are no positions
  std::uint64_t samples_read = 0, bytes_read = 0, read_busy_ns = 0;
  std::size_t workers = 0, io_threads = 0;
  std::size_t host_slots = 0, ready_slots = 0, slot_bytes = 0;
  std::vector<event_count> counts{};   ///< what was passed over or accepted, by name (measure/event_counts.hpp)
  std::vector<source_count> sources{};   ///< of a mix (sources/mix.hpp), in its order

  /// Share of the trainer's time spent waiting for data, without the first batch.
  double data_wait_share() const noexcept {
    const double all = static_cast<double>(wait_ns) + static_cast<double>(step_ns);
    return all > 0 ? static_cast<double>(wait_ns) / all : 0;
  }
};

}}  // namespace millrace
