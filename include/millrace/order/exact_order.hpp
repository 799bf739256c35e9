// Maps each position of an epoch to a sample, where the number of samples in each shard is known.
//
//   mr::detail::exact_order order({.seed = 7, .counts = counts, .window = 8192, .global_batch = 1024});
//   order.batches();                                   // batches of an epoch, the same number for every rank
//   order.sample_at(3, 70'000);                        // epoch 3, position 70,000: its shard, its index in the shard
//   mr::detail::lane_cursor mine(order, {.world = r, .epoch = 3, .position = 70'000});   // from there, one by one
//
// Order: (seed, pass) permutes the shards. The permuted shards, laid end to end, are the sequence of the pass. The
// sequence is cut into lanes whose lengths differ by at most one. A sliding jitter (order/lane_jitter.hpp) shuffles
// each lane with its share of the window. Position p is ordinal p div lanes of lane p mod lanes. Position p is also
// row p mod global_batch of batch p div global_batch. Rank r of R takes the positions p with p mod R = r. R must
// divide the lanes and the global batch. The order is the same for every R. The jitter moves a sample by less than
// `window` positions. Without a shuffle, position p is the p-th sample as listed.
//
// Epoch: an epoch is one exact pass, a fixed number of batches, or endless. The last samples of an exact pass may fill
// no batch. They are dropped, or delivered as a short batch. The dropped samples are one block of the sequence. A
// shuffle puts this block elsewhere in each pass. In a short batch, rank r may have fewer rows than rank 0, or none.
// With a fixed number of batches, or endless, exact passes follow each other across batches and epochs. Nothing is
// dropped then. Stages that draw random numbers use the pass as the epoch of their rng. So the same sample gets other
// numbers in each pass.
// Errors: throws setup_error for options that make no batch, and for a world size that does not divide.
// Threads: immutable; any thread may call any member.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/order/lane_jitter.hpp>
#include <millrace/order/pass_layout.hpp>
#include <millrace/order/shard_order.hpp>
#include <millrace/order/world.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of an exact_order.
struct exact_order_options {
  static constexpr std::uint64_t exact_pass = 0;
  static constexpr std::uint64_t endless = ~std::uint64_t{0};

  std::uint64_t seed = 0;
  std::vector<std::uint64_t> counts{};   ///< samples of each shard, in the list as the user gave it
  bool shuffled = true;
  std::size_t window = 8192;          ///< samples, all lanes together
  std::size_t lanes = 48;
  std::size_t global_batch = 1;       ///< rows of a batch, all ranks together
  bool drop_last = true;              ///< drops the samples of an exact pass that fill no batch
  std::uint64_t epoch_batches = exact_pass;   ///< exact_pass, endless, or the batches of an epoch
};

/// A position of the run and the sample at that position.
struct ordered_sample {
  std::uint64_t epoch = 0, position = 0;
  std::uint64_t pass = 0;   ///< pass through the data set, from 0
  located_sample sample{};

  friend bool operator==(const ordered_sample&, const ordered_sample&) = default;
};

class lane_cursor;

/// The order of one data set: maps positions to samples, for all epochs and ranks.
class exact_order {
 public:
  using options = exact_order_options;
  using cursor = lane_cursor;

  /// Throws setup_error if the options make no batch, no shard has a sample, or a number is too large.
  explicit exact_order(options o) : options_(std::move(o)) {
    if (options_.lanes == 0) throw setup_error("a plan of 0 lanes has no order", "Choose at least 1; 48 suit most");
    if (options_.global_batch == 0) throw setup_error("the batch size is 0", "Choose a size of at least 1");
    for (const std::uint64_t count : options_.counts) {
      samples_ += std::min(count, lane_jitter::max_places);
      if (samples_ >= lane_jitter::max_places)
        throw setup_error("the shards have 2^40 samples or more together", "Check what counted them");
    }
    if (samples_ == 0) throw setup_error("no shard has a sample", "Look at what the shards hold (examples/inspect)");
    const std::uint64_t batch = options_.global_batch;
    if (exact() && options_.drop_last) dropped_ = samples_ % batch;
    if (pass_length() == 0)
      throw setup_error("an epoch has only " + std::to_string(samples_) + " samples, fewer than the global batch of " +
                            std::to_string(batch) + ", and drop_last drops them",
                        "Use a smaller batch, more data, or batch({.drop_last = false})");
    if (!exact() && options_.epoch_batches != options::endless && options_.epoch_batches > max_positions / batch)
      throw setup_error("an epoch of " + std::to_string(options_.epoch_batches) + " batches is too long",
                        "Choose fewer, or an endless one");
    lane_window_ = lane_jitter::places(options_.window) / options_.lanes;
  }

  /// Returns the options.
  const options& settings() const noexcept { return options_; }
  /// Returns whether an epoch is an exact pass.
  bool exact() const noexcept { return options_.epoch_batches == options::exact_pass; }

  /// Returns the shuffle window in samples; 0: not shuffled.
  std::uint64_t window() const noexcept { return options_.shuffled ? options_.window : 0; }

  /// Returns the samples of the data set.
  std::uint64_t samples() const noexcept { return samples_; }
  /// Returns the samples that each pass leaves out.
  std::uint64_t dropped_per_pass() const noexcept { return dropped_; }
  /// Returns the samples that each pass delivers.
  std::uint64_t pass_length() const noexcept { return samples_ - dropped_; }

  /// Returns the positions of an epoch. Later positions hold nothing.
  std::uint64_t positions() const noexcept {
    if (exact()) return pass_length();
    if (options_.epoch_batches == options::endless) return options::endless;
    return options_.epoch_batches * options_.global_batch;
  }
  /// Returns the batches of an epoch, including the short one.
  std::uint64_t batches() const noexcept {
    return exact() ? (pass_length() + options_.global_batch - 1) / options_.global_batch : options_.epoch_batches;
  }
  /// Returns the rows that one rank delivers in this batch of an epoch.
  std::size_t rows(std::uint64_t batch, const world& mine) const noexcept {
    if (batch >= batches()) return 0;
    const std::uint64_t left = positions() - batch * options_.global_batch;
    return static_cast<std::size_t>(share(std::min<std::uint64_t>(left, options_.global_batch), mine));
  }
  /// Returns the number of positions that one rank gets out of `positions` that begin at a batch border.
  static std::uint64_t share(std::uint64_t positions, const world& mine) noexcept {
    return positions > mine.rank ? (positions - mine.rank - 1) / mine.size + 1 : 0;
  }

  /// Throws setup_error if the world is invalid, or its size does not divide the global batch and the lanes.
  void check(const world& r) const {
    if (r.size == 0 || r.rank >= r.size)
      throw setup_error("there is no " + r.describe(), "Ranks count from 0");
    const auto divides = [&](std::size_t whole, const char* what) {
      if (whole % r.size != 0)
        throw setup_error(std::to_string(r.size) + " ranks do not divide the " + what + " of " +
                              std::to_string(whole),
                          "Choose a number that they divide: the order would depend on them otherwise");
    };
    divides(options_.global_batch, "global batch");
    if (options_.shuffled) divides(options_.lanes, "number of lanes");
  }

  /// A position as an ordinal in a pass through the data.
  struct spot {
    std::uint64_t pass = 0, number = 0;
  };
  /// Returns the pass and the ordinal in it. Throws setup_error if the epoch or the position does not exist.
  spot spot_of(std::uint64_t epoch, std::uint64_t position) const {
    if (position >= positions())
      throw setup_error("an epoch has " + std::to_string(positions()) + " positions, and " + std::to_string(position) +
                            " is out of range",
                        "Positions count from 0");
    if (exact()) return {epoch, position};
    const bool one_epoch = options_.epoch_batches == options::endless;
    if (one_epoch ? epoch > 0 : epoch > max_positions / positions())
      throw setup_error("epoch " + std::to_string(epoch) + " does not exist",
                        "An endless epoch is the only one, epoch 0");
    const std::uint64_t since_start = one_epoch ? position : epoch * positions() + position;
    return {since_start / samples_, since_start % samples_};
  }

  /// Returns the shards of a pass in their order. Costs O(shards).
  pass_layout layout_of(std::uint64_t pass) const {
    const shard_order shards({.seed = options_.seed, .shards = options_.counts.size(), .shuffled = options_.shuffled});
    rng random({.seed = options_.seed, .epoch = pass, .sample = drop_stream, .stage = drop_stream});
    return pass_layout({.counts = options_.counts,
                        .shards = shards.shards_of(pass),
                        .dropped = dropped_,
                        .dropped_at = options_.shuffled ? random.below(pass_length() + 1) : pass_length()});
  }
  /// Returns the order inside one lane.
  lane_jitter lane_of(std::uint64_t pass, std::uint64_t lane) const noexcept {
    return lane_jitter({.seed = options_.seed,
                        .pass = pass,
                        .lane = lane,
                        .length = lane_begin(lane + 1) - lane_begin(lane),
                        .window = options_.window > 1 ? lane_window_ : 0});
  }
  /// Returns the start of a lane in the sequence of the pass.
  std::uint64_t lane_begin(std::uint64_t lane) const noexcept {
    return pass_length() / options_.lanes * lane + std::min<std::uint64_t>(pass_length() % options_.lanes, lane);
  }

  /// Returns the sample at a position. Costs O(shards + window / lanes): meant for single questions, not for walks.
  /// Throws setup_error if the epoch or the position does not exist.
  ordered_sample sample_at(std::uint64_t epoch, std::uint64_t position) const {
    const spot s = spot_of(epoch, position);
    std::uint64_t number = s.number;
    if (options_.shuffled) {
      const std::uint64_t lane = s.number % options_.lanes;
      number = lane_begin(lane) + lane_of(s.pass, lane).at(s.number / options_.lanes);
    }
    return {epoch, position, s.pass, layout_of(s.pass).find(number)};
  }

  /// Returns the samples that an epoch leaves out: fewer than a batch, and none except in exact passes with drop_last.
  std::vector<located_sample> dropped(std::uint64_t epoch) const {
    return exact() ? layout_of(epoch).dropped() : std::vector<located_sample>{};
  }

 private:
  // A separate rng stream, distinct from the streams of the stages.
  static constexpr std::uint64_t drop_stream = ~std::uint64_t{2};
  static constexpr std::uint64_t max_positions = std::uint64_t{1} << 62;

  options options_;
  std::uint64_t samples_ = 0, dropped_ = 0;
  std::uint64_t lane_window_ = 0;   // in 1/65536 of a sample
};

}}}  // namespace millrace::detail
