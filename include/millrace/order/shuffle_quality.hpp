// Measures the shuffle quality of one rank's samples during a run, for comparison with the forecast.
//
//   mr::detail::shuffle_quality live(order, mine);
//   live.add(planned);                 // each sample of this rank, in the order of positions
//   auto f = live.statistics();           // session::shuffle_quality() also fills in expected_share and ideal_share
//   f.share;                           // the share of a batch's most frequent shard, averaged over batches
//   f.neighbor_distance;              // mean number of positions between two samples that were adjacent in their shard
//   f.ideal_neighbor_distance;        // the distance after a uniform shuffle of the complete data set
//
// The comment before shuffle_forecast defines the share. The distance of neighbors matters, because neighbors in a
// shard are often similar, such as the frames of a video. The mean distance is about a third of the window. In each
// pass, the object observes up to about 2,048 batches and 4,096 pairs of neighbors. A rank observes a pair only if the
// rank delivers both samples.
// Cost: 1 to 3 ns per sample, and 4 bytes for each shard. Errors: none. Threads: not thread-safe.
// Lifetime: the exact_order must outlive the object.
#pragma once

#include <millrace/measure/values/run_stats.hpp>
#include <millrace/order/exact_order.hpp>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Forecasts the shuffle quality of an order before any sample is read. The measure is the share: the fraction of a
// batch's rows that belong to the most frequent shard of this batch.
//
// Without a world, a batch is the global batch (the rows of all ranks). With a world, a batch is the rows of one rank.
// Shares are means over batches, from 0 to 1. A window that covers the data set is a complete shuffle.
// share() and ideal_share() are statistical estimates with an error of about 3 %. The random numbers are fixed: the
// same settings produce the same estimates.
// Cost: about 10 ms for one estimate. window_within() computes 20 estimates. Errors: the constructor throws setup_error
// for a world size that does not divide the global batch. Threads: immutable; starts no threads. Lifetime: the
// exact_order must outlive the forecast.

/// Counts the rows of each shard in a batch.
class shuffle_shard_counts {
 public:
  explicit shuffle_shard_counts(std::size_t shards);

  void add(std::uint64_t shard);
  std::size_t rows() const noexcept { return all_; }
  double largest_share() const noexcept;
  void clear() noexcept;

 private:
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint64_t> counted_shards_;
  std::size_t all_ = 0;
  std::uint32_t most_ = 0;
};

/// A forecast of the shuffle quality of one exact_order.
class shuffle_forecast {
 public:
  /// Throws setup_error if the world size does not divide the global batch.
  explicit shuffle_forecast(const exact_order& plan, const world& mine = {});

  /// Returns the mean share of a batch's most frequent shard after a uniform shuffle of the complete data set.
  double ideal_share() const;

  /// Returns the mean share of a batch's most frequent shard, for the window of the order.
  MILLRACE_RARE double share() const { return share_of(*plan_); }

  /// Returns the mean share of a batch's most frequent shard, for a window of `window` samples.
  MILLRACE_RARE double share(std::size_t window) const { return share_of(plan_->with_window(window)); }

  /// Returns a window whose share is at most (1 + excess) times the ideal share. The returned window exceeds the
  /// smallest such window by at most about 5 %. Returns nothing if no such window exists, which is possible only in the
  /// order of an old resume point (version 1).
  std::optional<std::size_t> window_within(double excess) const;

 private:
  static constexpr std::size_t draws = 100'000;        // target number of random draws for one estimate
  static constexpr std::size_t max_places = 500'000;   // maximum number of shards in all layouts

  std::vector<std::size_t> as_listed() const;
  static rng stream(std::size_t round, std::uint64_t purpose) noexcept;

  double share_of(const exact_order& plan) const { return plan.permutes() ? ideal_share() : mean_share(plan); }
  double mean_share(const exact_order& plan) const;

  /// The rows of a batch that belong to one rank and one lane. The ordinals (numbers in the order of the lane) of these
  /// rows are `ordinal`, `ordinal + step`, and so on.
  struct block {
    std::uint64_t pass, lane, ordinal, rows, step;
  };

  template <class Count>
  static void count_in_lane(const exact_order& plan, const block& s, rng& random, const Count& count) {
    const std::uint64_t begin = plan.lane_begin(s.lane), length = plan.lane_begin(s.lane + 1) - begin;
    const auto all = static_cast<double>(length);
    const double window = plan.lane_window();
    if (std::min(window, all) <= 4 * static_cast<double>(s.rows * s.step)) {
      // With few candidate samples, independent random choices would be a poor estimate, and walking the exact order is
      // cheap.
      lane_walk walk(plan.lane_of(s.pass, s.lane), s.ordinal);
      for (std::uint64_t i = 0; i < s.rows; ++i) {
        while (walk.ordinal() < s.ordinal + i * s.step) static_cast<void>(walk.next());
        count(begin + walk.next());
      }
      return;
    }
    std::vector<std::uint64_t> indices;
    for (std::uint64_t i = 0; i < s.rows; ++i) {
      const double key = key_of(static_cast<double>(s.ordinal + i * s.step) + random.uniform(), window, all);
      const double low = std::max(0.0, key - window), high = std::min(key, all);
      std::uint64_t index = 0;
      for (int tries = 0; tries < 100; ++tries) {
        index = std::min(static_cast<std::uint64_t>(random.uniform(low, high)), length - 1);
        if (std::find(indices.begin(), indices.end(), index) == indices.end()) break;
      }
      indices.push_back(index);
      count(begin + index);
    }
  }

  /// Returns a sort key, in samples: about `delivered` samples of the lane have smaller keys. lane_jitter in
  /// order/exact_order.hpp defines the keys.
  static double key_of(double delivered, double window, double all) noexcept;

  const exact_order* plan_;
  world world_;
  std::vector<pass_layout> layouts_;   // layouts of the first passes
  std::size_t rows_ = 1, rounds_ = 1;
};

/// Observes the samples of one rank and measures their shuffle quality.
class shuffle_quality {
 public:
  explicit shuffle_quality(const exact_order& plan, const world& mine = {});

  /// Observes the next sample of the rank. Call it in the order of positions.
  void add(const ordered_sample& s);

  /// Returns the statistics of the samples so far.
  shuffle_statistics statistics() const noexcept;

 private:
  static constexpr std::uint64_t watched_pairs = 4'096, watched_batches = 1'024;

  void begin_batch(const ordered_sample& first);
  void watch(const ordered_sample& s);

  const exact_order* plan_;
  world world_;
  shuffle_shard_counts counter_;
  std::unordered_map<std::uint64_t, std::uint64_t> first_of_pair_;   // for each pair, the ordinal of its first sample
  std::uint64_t epoch_ = ~std::uint64_t{0}, pass_ = 0, batch_begin_ = 0;
  bool batch_is_watched_ = false;
  std::size_t rows_of_batch_ = 0;
  std::uint64_t pair_mask_ = 0, batch_mask_ = 0;
  double share_sum_ = 0, distance_sum_ = 0;
  shuffle_statistics statistics_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/order/impl/shuffle_quality.inl>
#endif
