// Determines how many bytes of a shard are read together for one sample. The other samples in these bytes stay in
// memory until they are requested.
//
//   const mr::detail::block_size size = mr::detail::block_size::choose(order, {.samples = 1'281'167,
//                                                                              .sample_bytes = 110'000,
//                                                                              .is_local = false});
//   const bool alone = size.held_bytes == 0;              // true: each sample is read separately
//
// On a local disk, only small samples are read in blocks. In a remote storage, larger samples are read in blocks of up
// to eight samples, because each request is expensive.
// Errors: none. Threads: pure functions; any thread.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The order in which samples will be requested.
struct expected_order {
  std::uint64_t window = 0;         ///< shuffle window in samples, summed over the lanes of this rank
  std::uint64_t lanes = 1;          ///< lanes (parts of the order) that are read concurrently
  std::size_t max_held_bytes = 0;   ///< maximum memory for samples that are read before they are requested
};

/// The size of one block, and of all blocks in memory.
struct block_size {
  static constexpr std::uint64_t min_bytes = std::uint64_t{256} << 10;
  static constexpr std::uint64_t max_samples = 8;   // maximum number of samples in a block of more than min_bytes
  static constexpr std::uint64_t min_places = 16;   // minimum that choose() assumes for `lanes`

  struct data_set {
    std::uint64_t samples = 0, sample_bytes = 0;   // sample_bytes: mean size with headers
    bool is_local = true;
  };

  std::uint64_t bytes = min_bytes;
  std::uint64_t held_bytes = 0;   ///< maximum size of all blocks in memory; 0 if samples are read separately

  /// Returns a limit in bytes. Samples with a larger mean size are not read in blocks.
  static constexpr std::uint64_t largest_sample(bool is_local) noexcept {
    return std::uint64_t{is_local ? 16U : 256U} << 10;
  }

  /// Returns the sizes for an order and a data set.
  static block_size choose(const expected_order& order, const data_set& data) noexcept {
    if (order.window <= 1 || data.samples == 0 || data.sample_bytes > largest_sample(data.is_local)) return {};
    // A block stays in memory from the first request for one of its samples until its last sample is delivered. The
    // factor 2 is a reserve: the memory of a block may be larger than its samples, and threads may overtake each other.
    const std::uint64_t window = std::min(order.window, data.samples);
    const std::uint64_t places = std::max(order.lanes, min_places);
    for (std::uint64_t together = data.is_local ? 1 : max_samples; together > 0; together /= 2) {
      const std::uint64_t bytes = std::max(min_bytes, together * data.sample_bytes);
      const std::uint64_t block_cache_bytes = 2 * (window * data.sample_bytes + 3 * places * bytes);
      if (block_cache_bytes <= order.max_held_bytes) return {bytes, block_cache_bytes};
    }
    return {};
  }
};

}}}   // namespace millrace::detail
