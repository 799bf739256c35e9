// Describes the order of one pass before the shuffle: the samples of all shards, shard after shard.
//
//   mr::detail::pass_layout layout({.counts = counts, .shards = {2, 0, 1}, .dropped = 5, .dropped_at = 40});
//   layout.length();                    // number of delivered samples: all except the dropped samples
//   layout.find(17);                    // {shard, index} of delivered sample 17
//   layout.dropped();                   // shard and index of each dropped sample
//
// `counts` contains the number of samples in each shard, in the order of the user's list. `shards` is a permutation of
// the indices of that list. Shards may be empty. The dropped samples form one block at any offset.
// Errors: none. The argument of find() must be below length(). Threads: immutable. The `nearby` argument of find_from()
// must not be shared between threads.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/sample.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// A uniform permutation of the samples of one pass. A pass has this order if the shuffle window covers the data set.
// Method: Fisher-Yates with counter-based random numbers of (seed, pass).
// Cost: 4 bytes for each sample, or 8 bytes for 2^32 samples or more. The construction needs 2 ns per sample if these
// bytes fit in the cache, and up to 20 ns otherwise. A lookup reads one element.

/// The order of one pass, as a table.
class pass_permutation {
 public:
  struct options {
    std::uint64_t seed = 0;
    std::uint64_t pass = 0;
    std::uint64_t length = 0;   ///< number of samples in the pass
  };

  pass_permutation() = default;
  explicit pass_permutation(const options& o);

  /// Returns the index that a sample has before the shuffle. `ordinal` is the number of the sample in the order. It
  /// must be below the length.
  std::uint64_t operator[](std::uint64_t ordinal) const noexcept {
    return wide_.empty() ? narrow_[ordinal] : wide_[ordinal];
  }

  /// Loads the start of the table into the CPU's cache.
  void prefetch() const noexcept { __builtin_prefetch(narrow_.data()); }

 private:
  static constexpr std::uint64_t permutation_stream = ~std::uint64_t{4};   // a random stream that no stage uses

  std::vector<std::uint32_t> narrow_;
  std::vector<std::uint64_t> wide_;   // used for 2^32 samples or more
};

/// The delivered and dropped samples of one pass, by shard and index.
class pass_layout {
 public:
  struct options {
    std::span<const std::uint64_t> counts{};   ///< number of samples in each shard; read during construction only
    std::vector<std::size_t> shards{};         ///< the shards in the order of the pass
    std::uint64_t dropped = 0;                 ///< number of samples that are not delivered
    std::uint64_t dropped_at = 0;              ///< number of delivered samples before the dropped samples
  };

  pass_layout() = default;
  explicit pass_layout(options o);

  /// Returns the number of delivered samples.
  std::uint64_t length() const noexcept { return starts_.back() - dropped_; }

  /// Returns the delivered sample with this number, from 0.
  located_sample find(std::uint64_t number) const noexcept {
    std::size_t nearby = 0;
    return find_from(nearby, number);
  }

  /// Returns the result of find(). This function is faster for increasing numbers. Initialize a variable `nearby` to 0,
  /// and pass the variable to all calls.
  located_sample find_from(std::size_t& nearby, std::uint64_t number) const noexcept {
    const std::uint64_t ordinal = number < dropped_at_ ? number : number + dropped_;
    if (ordinal < starts_[nearby] || ordinal >= starts_[nearby + 1]) {
      const auto after = std::upper_bound(starts_.begin(), starts_.end(), ordinal);
      nearby = static_cast<std::size_t>(after - starts_.begin()) - 1;
    }
    return {shards_[nearby], ordinal - starts_[nearby]};
  }

  /// Loads the start of the tables into the CPU's cache.
  void prefetch() const noexcept {
    __builtin_prefetch(starts_.data());
    __builtin_prefetch(shards_.data());
  }

  /// Returns the samples that are not delivered.
  std::vector<located_sample> dropped() const;

 private:
  std::vector<std::size_t> shards_;
  std::vector<std::uint64_t> starts_{0};   // start of each shard, and the end of the last shard
  std::uint64_t dropped_ = 0, dropped_at_ = 0;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/order/impl/pass_layout.inl>
#endif
