// Maps each position of an epoch to a sample. Requires the number of samples in each shard.
//
//   mr::detail::exact_order order({.seed = 7, .counts = counts, .window = 8192, .global_batch = 1024});
//   order.batches();                                   // batches of an epoch, the same number for every rank
//   order.sample_at(3, 70'000);   // the sample of epoch 3 at position 70,000: its shard, and its index in the shard
//   mr::detail::lane_cursor mine(order, {.world = r, .epoch = 3, .position = 70'000});   // iterates from this position
//
// Order of a pass: seed and pass determine a permutation of the shards. The samples of the permuted shards, one shard
// after the other, are the sequence of the pass. A sliding jitter (lane_jitter) moves each sample by less than `window`
// places. If the window is at least as large as the data set, the order is a uniform permutation instead
// (pass_permutation). Without a shuffle, shards and samples are in the order of the user's list.
//
// Lanes: the sequence of a large data set is divided into lanes, which are consecutive parts of similar length. Each
// lane is shuffled separately, with its share of the window. Positions alternate between the lanes: with L lanes,
// position p is the sample p div L of lane p mod L. Therefore each rank reads only some of the shards. The number of
// lanes does not depend on the number of ranks.
//
// Ranks: with R ranks, rank r has the positions p with p mod R = r. R must divide the global batch (the rows of all
// ranks in one step). The order is the same for every R. If R does not divide the number of lanes, several ranks read
// the same lane.
//
// Epoch: an epoch is one exact pass (each sample once), a fixed number of batches, or endless. If the last samples of
// an exact pass do not fill a batch, they are dropped, or delivered as a short batch. In a short batch, some ranks have
// fewer rows than others, or no rows. With a shuffle, each pass drops different samples. If an epoch is not an exact
// pass, no sample is dropped, and a pass may end inside a batch. A sample gets different random numbers in each pass.
//
// Errors: setup_error if an epoch has no batch, or if the world size does not divide the global batch.
// Threads: immutable; any thread may call any member.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/sample.hpp>
#include <millrace/item/world.hpp>
#include <millrace/order/sliding_jitter.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// pass_layout describes the order of one pass before the shuffle: the samples of all shards, shard after shard.
//
// `counts` contains the number of samples in each shard, in the order of the user's list. `shards` is a permutation of
// the indices of that list. Shards may be empty. The dropped samples are consecutive, and may begin at any offset.
// Errors: none. The argument of find() must be below length(). Threads: immutable. The `nearby` argument of find_from()
// must not be shared between threads.

// A uniform permutation of the samples of one pass. A pass has this order if the shuffle window covers the data set.
// Method: Fisher-Yates with counter-based random numbers of (seed, pass).
// Cost: 4 bytes per sample, or 8 bytes per sample if the pass has more than 2^32 samples. The construction needs 2 ns
// per sample if these bytes fit in the cache, and up to 20 ns otherwise. A lookup reads one element.

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

  /// Returns the index that a sample has before the shuffle. `ordinal` is the number of the sample in the shuffled
  /// order, and must be below the length.
  std::uint64_t operator[](std::uint64_t ordinal) const noexcept {
    return wide_.empty() ? narrow_[ordinal] : wide_[ordinal];
  }

  /// Loads the start of the table into the CPU's cache.
  void prefetch() const noexcept { __builtin_prefetch(narrow_.data()); }

 private:
  static constexpr std::uint64_t permutation_stream = ~std::uint64_t{4};   // a random stream that no stage uses

  std::vector<std::uint32_t> narrow_;
  std::vector<std::uint64_t> wide_;   // used for more than 2^32 samples
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

// Defines the order inside one lane (a part of a pass with its own order): a shuffle within a sliding window. The
// sample at any ordinal (its number in the shuffled order) can be computed without the samples before it.
//
// Sample i of a lane gets the sort key i + U * w. U is a random number in [0, 1) that depends on seed, pass, lane and
// i. The window is w. Samples are sorted by key, and samples with equal keys by i. Therefore each sample moves by less
// than w places.
// Cost: a walk stores about w samples at its start, and about w / 2 samples later. at() costs O(w). A window of at most
// one sample changes nothing.
// Errors: none. Ordinals must be below the length, and next() must not be called after the end of the lane.
// Threads: a lane_jitter is immutable; a lane_walk is not thread-safe.

/// The order inside one lane. It depends only on its options.
class lane_jitter {
 public:
  struct options {
    std::uint64_t seed = 0;
    std::uint64_t pass = 0;
    std::uint64_t lane = 0;
    std::uint64_t length = 0;   ///< number of samples in the lane
    std::uint64_t window = 0;   ///< shuffle window of the lane, in 1/65536 of a sample, because it may be a fraction
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

  /// Examines the samples that may be at or near this ordinal. Stores the sample at the ordinal as the first entry of
  /// `around`. The examined samples with higher ordinals follow in any order. Returns the index after the last examined
  /// sample.
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

/// Options of an exact_order.
struct exact_order_options {
  static constexpr std::uint64_t exact_pass = 0;
  static constexpr std::uint64_t endless = ~std::uint64_t{0};

  std::uint64_t seed = 0;
  std::vector<std::uint64_t> counts{};   ///< samples of each shard, in the order of the user's list
  bool shuffled = true;
  std::size_t window = 8192;      ///< shuffle window in samples, over all lanes
  std::size_t lanes = 0;          ///< number of lanes; 0 selects automatic_lanes()
  std::size_t global_batch = 1;   ///< rows of a global batch
  bool drop_last = true;          ///< drops the samples of an exact pass that do not fill a batch
  /// If true, and if the window covers the data set, each pass is a uniform permutation. If false, samples are always
  /// shuffled inside lanes. Resume points of version 1 require false.
  bool permutes = true;
  std::uint64_t epoch_batches = exact_pass;   ///< exact_pass, endless, or a number of batches
};

/// A position of the run and the sample at that position.
struct ordered_sample {
  std::uint64_t epoch = 0, position = 0;
  std::uint64_t pass = 0;   ///< pass through the data set, from 0
  located_sample sample{};

  friend bool operator==(const ordered_sample&, const ordered_sample&) = default;
};

/// Returns a number of lanes that suits the number of samples, the number of shards and the window. Returns 1 for a
/// small data set and for a wide window.
std::size_t automatic_lanes(const exact_order_options& o);

/// If the window has less than 2 samples for each of `lanes` lanes, returns a warning that ends with the sentence
/// `remedy`. Otherwise returns an empty string.
std::string narrow_window_notice(std::size_t window, std::size_t lanes, std::string_view remedy);
/// Returns the remedy for narrow_window_notice(). `older_order` is true if a resume point of version 1, and not the
/// user, determines the lanes.
std::string_view remedy_for_lanes(bool older_order) noexcept;

class lane_cursor;

/// The order of one data set: maps positions to samples, for all epochs and ranks.
class exact_order {
 public:
  using options = exact_order_options;
  using cursor = lane_cursor;

  /// Throws setup_error if an epoch has no batch, no shard has a sample, or a number is too large.
  explicit exact_order(options o);

  /// Returns the options, with the actual number of lanes.
  const options& settings() const noexcept { return options_; }
  /// Returns whether each pass is a uniform permutation, because the window covers the data set.
  bool permutes() const noexcept { return permutes_; }
  /// Returns the same order with another window. If the number of lanes is automatic, computes this number again.
  exact_order with_window(std::size_t window) const;
  /// Returns the window of one lane in samples: a sample moves by less than this number of places in its lane. If each
  /// pass is a uniform permutation, returns samples().
  double lane_window() const noexcept;
  /// If the window is too small for the number of lanes, returns a warning. Otherwise returns an empty string.
  std::string window_notice() const;
  /// Returns whether an epoch is an exact pass.
  bool exact() const noexcept { return options_.epoch_batches == options::exact_pass; }

  /// Returns the shuffle window in samples, or 0 without a shuffle.
  std::uint64_t window() const noexcept { return options_.shuffled ? options_.window : 0; }

  /// Returns the number of samples of the data set.
  std::uint64_t samples() const noexcept { return samples_; }
  /// Returns the number of samples that each pass drops.
  std::uint64_t dropped_per_pass() const noexcept { return dropped_; }
  /// Returns the number of samples that each pass delivers.
  std::uint64_t pass_length() const noexcept { return samples_ - dropped_; }

  /// Returns the number of positions in an epoch. Later positions have no sample.
  std::uint64_t positions() const noexcept;
  /// Returns the number of batches in an epoch, including a short last batch.
  std::uint64_t batches() const noexcept;
  /// Returns the number of rows that one rank delivers in batch `batch` of an epoch.
  std::size_t rows(std::uint64_t batch, const world& mine) const noexcept;
  /// Returns how many numbers p below `positions` satisfy p mod R = r, where r is the rank and R the number of ranks.
  static std::uint64_t share(std::uint64_t positions, const world& mine) noexcept;

  /// Throws setup_error if the world is invalid, or its size does not divide the global batch.
  void check(const world& r) const;

  /// The pass that contains a position of an epoch, and the index of that position in the pass.
  struct spot {
    std::uint64_t pass = 0, number = 0;
  };
  /// Throws setup_error if the epoch or the position does not exist.
  spot spot_of(std::uint64_t epoch, std::uint64_t position) const;

  /// Returns the shards of a pass in their order. Costs O(shards).
  pass_layout layout_of(std::uint64_t pass) const;
  /// Returns the table of a pass that is a uniform permutation. Costs O(samples).
  pass_permutation permutation_of(std::uint64_t pass) const;
  /// Returns the distance between two consecutive lanes of one rank. For example, with 48 lanes and 3 ranks, rank 0
  /// reads the lanes 0, 3, 6, ..., and the distance is 3. With 5 ranks, each rank reads every lane, and the distance is
  /// 1.
  std::size_t lane_step(const world& mine) const noexcept;
  /// Returns the order inside one lane of a pass.
  lane_jitter lane_of(std::uint64_t pass, std::uint64_t lane) const noexcept;
  /// Returns the offset of a lane in the sequence of the pass.
  std::uint64_t lane_begin(std::uint64_t lane) const noexcept;

  /// Returns the sample at a position. Costs O(shards + window / lanes), or O(samples) if each pass is a uniform
  /// permutation. For iteration, use a lane_cursor. Throws setup_error if the epoch or the position does not exist.
  ordered_sample sample_at(std::uint64_t epoch, std::uint64_t position) const;

  /// Returns the samples that an epoch drops: fewer than a batch. Only an exact pass with drop_last drops samples.
  std::vector<located_sample> dropped(std::uint64_t epoch) const;

 private:
  // The random stream that selects the dropped samples. No stage uses it.
  static constexpr std::uint64_t drop_stream = ~std::uint64_t{2};
  static constexpr std::uint64_t max_positions = std::uint64_t{1} << 62;

  options options_;
  bool lanes_are_automatic_ = false, permutes_ = false;
  std::uint64_t samples_ = 0, dropped_ = 0;
  std::uint64_t lane_window_ = 0;   // in 1/65536 of a sample
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/order/impl/exact_order.inl>
#endif
