// Describes the shuffle quality of the samples of a rank, compared with the forecast and with a complete shuffle.
//
//   const mr::shuffle_statistics f = run.shuffle_quality();
//   std::printf("one shard has %.1f %% of a batch, %.1f %% at best\n", 100 * f.share, 100 * f.ideal_share);
//   std::printf("neighbors are %.0f positions apart\n", f.neighbor_distance);
//
// Shares are from 0 to 1; distances are in positions. order/shuffle_forecast.hpp defines the shares, and
// order/shuffle_quality.hpp defines how they are measured. Errors: none. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// The shuffle quality, compared with a shuffle of the complete data set.
struct shuffle_statistics {
  double share = 0;            ///< observed mean share of the largest shard in a batch
  double expected_share = 0;   ///< forecast for the order's window; set by session::shuffle_quality()
  double ideal_share = 0;      ///< forecast for a complete shuffle; set by session::shuffle_quality()
  double neighbor_distance = 0;         ///< observed mean distance, in positions of the global order
  double ideal_neighbor_distance = 0;   ///< the same for a complete shuffle
  std::uint64_t batches = 0, neighbors = 0;   ///< number of observed batches and pairs; 0 if nothing was observed
};

}}  // namespace millrace
