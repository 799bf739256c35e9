// Defines the order inside one lane (a part of a pass with its own order): a shuffle within a sliding window. The
// sample at any ordinal (its number in the shuffled order) can be computed without the samples before it.
//
//   const std::uint64_t window = mr::detail::lane_jitter::places(170);
//   mr::detail::lane_jitter order({.seed = 7, .pass = 2, .lane = 5, .length = 26'669, .window = window});
//   order.at(1'000);   // for ordinal 1,000: the sample's index in the lane before the shuffle
//   mr::detail::lane_walk walk(order, 1'000);       // iterates over the ordinals 1,000, 1,001, ...
//   walk.next();
//
// Sample i of a lane gets the key i + U * w. U is a random number in [0, 1) that depends on seed, pass, lane and i. The
// window is w. Samples are sorted by key, and samples with equal keys by i. Therefore each sample moves by less than w
// places.
// Cost: a walk stores about w samples at its start, and about w / 2 samples later. at() costs O(w). A window of at most
// one sample changes nothing.
// Errors: none. Ordinals must be below the length, and next() must not be called after the end of the lane.
// Threads: a lane_jitter is immutable; a lane_walk is not thread-safe.
#pragma once

#include <millrace/order/sliding_jitter.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The order inside one lane. It depends only on its options.
class lane_jitter {
 public:
  struct options {
    std::uint64_t seed = 0;
    std::uint64_t pass = 0;
    std::uint64_t lane = 0;
    std::uint64_t length = 0;   ///< number of samples in the lane
    std::uint64_t window = 0;   ///< in 1/65536 of a sample, because a lane's share of a window may be a fraction
  };
  /// One sample of the lane and its key.
  struct entry {
    std::uint64_t key = 0, index = 0;
  };

  /// Maximum length and window in samples. Larger values would overflow the keys.
  static constexpr std::uint64_t max_places = std::uint64_t{1} << 40;
  /// One sample in the unit of the keys.
  static constexpr std::uint64_t one_place = std::uint64_t{1} << 16;
  /// Converts a number of samples to the unit of the keys.
  static constexpr std::uint64_t places(std::uint64_t count) noexcept { return std::min(count, max_places) << 16; }

  lane_jitter() = default;
  explicit lane_jitter(const options& o) : options_(o) {}

  /// Returns the options.
  const options& settings() const noexcept { return options_; }
  /// Returns whether the jitter changes the order at all.
  bool moves() const noexcept { return options_.window > one_place; }

  /// Returns the key of a sample, in 1/65536 of a sample.
  std::uint64_t key(std::uint64_t index) const noexcept;

  /// Returns the index (before the shuffle) of the sample with this ordinal. Costs O(window).
  std::uint64_t at(std::uint64_t ordinal) const;

  /// Stores in `around` the sample at this ordinal, followed in any order by the other samples that the call examined.
  /// Returns the first index that the call did not examine.
  std::uint64_t gather(std::uint64_t ordinal, std::vector<entry>& around) const;

 private:
  static constexpr std::uint64_t jitter_stream = ~std::uint64_t{1};   // a random stream that no stage uses

  options options_;
};

/// Walks the samples of a lane in order, starting at any ordinal.
class lane_walk {
 public:
  lane_walk() = default;
  lane_walk(const lane_jitter& order, std::uint64_t ordinal);

  /// Returns the ordinal of the sample that next() returns.
  std::uint64_t ordinal() const noexcept { return ordinal_; }
  /// Returns whether next() has returned all samples of the lane.
  bool done() const noexcept { return ordinal_ >= order_.settings().length; }

  /// Returns the index (before the shuffle) of the next sample.
  std::uint64_t next() {
    if (!order_.moves()) return ordinal_++;
    while (waiting_.arrived() < order_.settings().length && !waiting_.is_certain())
      waiting_.push({.key = order_.key(waiting_.arrived())});
    ++ordinal_;
    return waiting_.pop().index;
  }

 private:
  lane_jitter order_;
  sliding_jitter<lane_jitter::entry> waiting_;
  std::uint64_t ordinal_ = 0;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/order/impl/lane_jitter.inl>
#endif
