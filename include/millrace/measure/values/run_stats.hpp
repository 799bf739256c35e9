// Defines the counters of a session.
//
//   const auto s = run.stats();                  // any thread, any time
//   std::printf("%.1f %% of the time waited for data\n", 100 * s.data_wait_share());
//
// Times are in nanoseconds. Errors: none. Threads: any thread may call stats(). The copy that it returns is not
// synchronized.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/event_counts.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

// Shares are from 0 to 1. A distance is the number of positions between two samples that were adjacent in their shard.
// order/shuffle_quality.hpp defines the shares, and describes how they are measured.

/// The shuffle quality of the samples of one rank, compared with the forecast and with a complete shuffle (a uniform
/// shuffle of the complete data set).
struct shuffle_statistics {
  double share = 0;                           ///< observed share of a batch's most frequent shard; mean over batches
  double expected_share = 0;                  ///< forecast for the order's window; set by session::shuffle_quality()
  double ideal_share = 0;                     ///< forecast for a complete shuffle; set by session::shuffle_quality()
  double neighbor_distance = 0;               ///< observed mean distance, in positions of the global order
  double ideal_neighbor_distance = 0;         ///< mean distance after a complete shuffle
  std::uint64_t batches = 0, neighbors = 0;   ///< number of observed batches, and of pairs of adjacent samples
};

/// The number of samples from one source of a mix.
struct source_count {
  std::string name{};
  std::uint64_t samples = 0;   ///< samples delivered to this rank
};

/// Counters since the start of the session.
struct run_stats {
  std::uint64_t batches = 0, samples = 0;   ///< number of delivered batches and samples
  std::uint64_t wait_ns = 0;                ///< time that the trainer waited in next()
  std::uint64_t step_ns = 0;                ///< time between calls of next(), without the pauses between epochs
  std::uint64_t first_batch_ns = 0;         ///< time from the start to the first batch; not part of wait_ns
  std::uint64_t worker_busy_ns = 0;         ///< busy time in the stages that fill batches, summed over the workers
  std::uint64_t dropped_last = 0;           ///< samples that were dropped at the ends of epochs; 0 if unknown
  std::uint64_t replaced = 0, masked = 0;   ///< damaged samples: replaced by a copy of another row; masked with zeros
  std::uint64_t lost_shards = 0;            ///< shards whose remaining samples were lost because of damage
  std::uint64_t digest = 0;                 ///< b.position().digest of the last batch; 0 without an index
  std::uint64_t samples_read = 0, bytes_read = 0, read_busy_ns = 0;
  std::size_t workers = 0, io_threads = 0;
  std::size_t host_slots = 0, ready_slots = 0, slot_bytes = 0;
  std::vector<event_count> counts{};     ///< event counts by name (measure/values/event_counts.hpp)
  std::vector<source_count> sources{};   ///< counts by source of a mix (sources/mix.hpp), in the order of the sources

  /// Returns the share of the trainer's time that was spent waiting for data, excluding the wait for the first batch.
  double data_wait_share() const noexcept {
    const double all = static_cast<double>(wait_ns) + static_cast<double>(step_ns);
    return all > 0 ? static_cast<double>(wait_ns) / all : 0;
  }
};

}}   // namespace millrace
