// The plan where the number of samples of each shard is known: which sample lies at which position.
//
//   exact_order plan({.seed = 7, .counts = counts, .window = 8192, .global_batch = 1024});
//   plan.batches();                                   // of an epoch, the same number for every rank
//   plan.sample_at(3, 70'000);                        // epoch 3, position 70,000: which part, which index
//   lane_cursor mine(plan, {.world = r, .epoch = 3, .position = 70'000});   // order/lane_cursor.hpp: one by one
//
// The parts are permuted by (seed, pass) and laid end to end; that sequence is cut into lanes, whose lengths differ by
// one at most; a sliding jitter shuffles each lane (order/lane_jitter.hpp) with its share of the window. Position p
// lies in lane p mod lanes, at its place p div lanes; row p mod global_batch of batch p div global_batch. Rank r of R
// takes the positions p = r mod R, where R divides the lanes and the global batch: whatever R, the order is the same.
// By the jitter a sample moves by less than `window` positions. Not shuffled, position p is the p-th sample as listed.
//
// An epoch is an exact pass, whose last samples that fill no batch are dropped (one stretch of the sequence, elsewhere
// in each pass if shuffled) or delivered as a short batch: then rank r's rows of it may be fewer than rank 0's, or
// none. Or it is a fixed number of batches, or endless: then exact passes follow each other without regard to batches
// and epochs, and nothing is dropped. What draws numbers for a sample takes its pass for the epoch, so that the same
// sample meets other numbers in each pass.
// Errors: setup_error for options that make no batch, and for ranks that do not divide. Threads: immutable.
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

namespace millrace { inline namespace MILLRACE_ABI {

struct exact_order_options {
  static constexpr std::uint64_t exact_pass = 0;
  static constexpr std::uint64_t endless = ~std::uint64_t{0};

  std::uint64_t seed = 0;
  std::vector<std::uint64_t> counts{};   ///< samples of each part, in the list as the user gave it
  bool shuffled = true;
  std::size_t window = 8192;          ///< of all lanes together, in samples
  std::size_t lanes = 48;
  std::size_t global_batch = 1;       ///< rows of a batch of all ranks together
  bool drop_last = true;              ///< of an exact pass
  std::uint64_t epoch_batches = exact_pass;   ///< or so many, or endless
};

/// A position of the run, and the sample that lies there.
struct planned_sample {
  std::uint64_t epoch = 0, position = 0;
  std::uint64_t pass = 0;   ///< through the data set, from 0
  located_sample sample{};

  friend bool operator==(const planned_sample&, const planned_sample&) = default;
};

class lane_cursor;

class exact_order {
 public:
  using options = exact_order_options;
  using cursor = lane_cursor;

  explicit exact_order(options o) : options_(std::move(o)) {
    if (options_.lanes == 0) throw setup_error("a plan of 0 lanes has no order", "Choose at least 1; 48 suit most");
    if (options_.global_batch == 0) throw setup_error("batches of 0 rows are none", "Choose a size of at least 1");
    for (const std::uint64_t count : options_.counts) {
      samples_ += std::min(count, lane_jitter::most_places);
      if (samples_ >= lane_jitter::most_places)
        throw setup_error("the shards have 2^40 samples or more together", "Check what counted them");
    }
    if (samples_ == 0) throw setup_error("no shard has a sample", "Look at what the shards hold (examples/inspect)");
    const std::uint64_t batch = options_.global_batch;
    if (exact() && options_.drop_last) dropped_ = samples_ % batch;
    if (pass_length() == 0)
      throw setup_error("an epoch has only " + std::to_string(samples_) + " samples, fewer than the global batch of " +
                            std::to_string(batch) + ", and drop_last drops them",
                        "Use a smaller batch, more data, or batch({.drop_last = false})");
    if (!exact() && options_.epoch_batches != options::endless && options_.epoch_batches > most_positions / batch)
      throw setup_error("an epoch of " + std::to_string(options_.epoch_batches) + " batches is too long",
                        "Choose fewer, or an endless one");
    lane_window_ = lane_jitter::places(options_.window) / options_.lanes;
  }

  const options& settings() const noexcept { return options_; }
  bool exact() const noexcept { return options_.epoch_batches == options::exact_pass; }

  /// Of the shuffle, in samples; 0: none.
  std::uint64_t window() const noexcept { return options_.shuffled ? options_.window : 0; }

  /// Of the data set.
  std::uint64_t samples() const noexcept { return samples_; }
  /// That a pass leaves out.
  std::uint64_t dropped_per_pass() const noexcept { return dropped_; }
  std::uint64_t pass_length() const noexcept { return samples_ - dropped_; }

  /// Of an epoch; positions from there on hold nothing.
  std::uint64_t positions() const noexcept {
    if (exact()) return pass_length();
    if (options_.epoch_batches == options::endless) return options::endless;
    return options_.epoch_batches * options_.global_batch;
  }
  /// Of an epoch, the short one included.
  std::uint64_t batches() const noexcept {
    return exact() ? (pass_length() + options_.global_batch - 1) / options_.global_batch : options_.epoch_batches;
  }
  /// What one rank delivers in that batch of an epoch.
  std::size_t rows(std::uint64_t batch, const world& mine) const noexcept {
    if (batch >= batches()) return 0;
    const std::uint64_t left = positions() - batch * options_.global_batch;
    return static_cast<std::size_t>(share(std::min<std::uint64_t>(left, options_.global_batch), mine));
  }
  /// What one rank gets of that many positions that begin where a batch does.
  static std::uint64_t share(std::uint64_t positions, const world& mine) noexcept {
    return positions > mine.rank ? (positions - mine.rank - 1) / mine.size + 1 : 0;
  }

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

  /// Where a position lies in the passes through the data.
  struct spot {
    std::uint64_t pass = 0, number = 0;
  };
  spot spot_of(std::uint64_t epoch, std::uint64_t position) const {
    if (position >= positions())
      throw setup_error("an epoch has " + std::to_string(positions()) + " positions, and " + std::to_string(position) +
                            " is none of them",
                        "Positions count from 0");
    if (exact()) return {epoch, position};
    const bool one_epoch = options_.epoch_batches == options::endless;
    if (one_epoch ? epoch > 0 : epoch > most_positions / positions())
      throw setup_error("there is no epoch " + std::to_string(epoch), "An endless epoch is the only one, epoch 0");
    const std::uint64_t since_start = one_epoch ? position : epoch * positions() + position;
    return {since_start / samples_, since_start % samples_};
  }

  pass_layout layout_of(std::uint64_t pass) const {
    const shard_order shards({.seed = options_.seed, .shards = options_.counts.size(), .shuffled = options_.shuffled});
    rng random({.seed = options_.seed, .epoch = pass, .sample = drop_stream, .stage = drop_stream});
    return pass_layout({.counts = options_.counts,
                        .shards = shards.shards_of(pass),
                        .dropped = dropped_,
                        .dropped_at = options_.shuffled ? random.below(pass_length() + 1) : pass_length()});
  }
  /// The order in one of the lanes.
  lane_jitter lane_of(std::uint64_t pass, std::uint64_t lane) const noexcept {
    return lane_jitter({.seed = options_.seed,
                        .pass = pass,
                        .lane = lane,
                        .length = lane_begin(lane + 1) - lane_begin(lane),
                        .window = options_.window > 1 ? lane_window_ : 0});
  }
  /// Where a lane begins in the pass's sequence.
  std::uint64_t lane_begin(std::uint64_t lane) const noexcept {
    return pass_length() / options_.lanes * lane + std::min<std::uint64_t>(pass_length() % options_.lanes, lane);
  }

  /// Costs O(parts + window / lanes): for questions, not for walking.
  planned_sample sample_at(std::uint64_t epoch, std::uint64_t position) const {
    const spot s = spot_of(epoch, position);
    std::uint64_t number = s.number;
    if (options_.shuffled) {
      const std::uint64_t lane = s.number % options_.lanes;
      number = lane_begin(lane) + lane_of(s.pass, lane).at(s.number / options_.lanes);
    }
    return {epoch, position, s.pass, layout_of(s.pass).find(number)};
  }

  /// The samples that an epoch leaves out: fewer than a batch, and none unless it is an exact pass with drop_last.
  std::vector<located_sample> dropped(std::uint64_t epoch) const {
    return exact() ? layout_of(epoch).dropped() : std::vector<located_sample>{};
  }

 private:
  // A stream of its own, apart from those of the stages that draw.
  static constexpr std::uint64_t drop_stream = ~std::uint64_t{2};
  static constexpr std::uint64_t most_positions = std::uint64_t{1} << 62;

  options options_;
  std::uint64_t samples_ = 0, dropped_ = 0;
  std::uint64_t lane_window_ = 0;   // in 1/65536 of a place
};

}}  // namespace millrace
