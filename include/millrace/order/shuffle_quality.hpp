// Measures the shuffle quality of the samples that a rank gets: live figures to compare with the forecast.
//
//   mr::detail::shuffle_quality live(order, mine);
//   live.add(planned);                 // each sample of this rank, in the order of positions
//   auto f = live.figures();           // session::shuffle_quality() also fills in expected_share and ideal_share
//   f.share;                           // the largest share of one shard in a batch, mean
//   f.neighbor_distance;              // positions between two samples that are shard neighbors, mean
//   f.ideal_neighbor_distance;        // the same for a complete shuffle
//
// order/shuffle_forecast.hpp explains shares, and says how another window changes them. Neighbors in a shard are often
// alike, such as the frames of a video or one photographer's pictures. So the distance between them matters: about a
// third of the window, ideally a third of the data set. At most about 2,048 batches and 4,096 pairs of each pass are
// watched, the same in every run. A rank does not see a pair if another rank has one of its samples.
// Costs: 1 to 3 ns a sample, and 4 bytes for each shard. Errors: none. Threads: one thread uses an object.
// Lifetime: the exact_order outlives it.
#pragma once

#include <millrace/order/shuffle_forecast.hpp>

#include <bit>
#include <unordered_map>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Shuffle quality, compared with a shuffle of the whole data set.
struct shuffle_quality_figures {
  double share = 0;            ///< observed mean share of the largest shard in a batch
  double expected_share = 0;   ///< forecast for the order's window; shuffle_quality leaves it 0
  double ideal_share = 0;      ///< forecast for a complete shuffle; shuffle_quality leaves it 0
  double neighbor_distance = 0;         ///< observed mean distance, in positions of all ranks together
  double ideal_neighbor_distance = 0;   ///< the same for a complete shuffle
  std::uint64_t batches = 0, neighbors = 0;   ///< observed batches and pairs; 0 makes the figure 0
};

/// Observes the samples of one rank and measures their shuffle quality.
class shuffle_quality {
 public:
  explicit shuffle_quality(const exact_order& plan, const world& mine = {})
      : plan_(&plan), world_(mine), counter_(plan.settings().counts.size()) {
    // The mean distance of two random ordinals out of n is (n + 1) / 3.
    figures_.ideal_neighbor_distance = static_cast<double>(plan.pass_length() + 1) / 3;
    pair_mask_ = std::bit_ceil(plan.samples() / 2 / watched_pairs + 1) - 1;
    batch_mask_ = std::bit_floor(plan.pass_length() / plan.settings().global_batch / watched_batches + 1) - 1;
  }

  /// Observes the next sample of the rank. Call it in the order of positions.
  void add(const ordered_sample& s) {
    if (s.position - batch_begin_ >= plan_->settings().global_batch || s.epoch != epoch_) begin_batch(s);
    if (batch_is_watched_) {
      counter_.add(s.sample.shard);
      if (counter_.rows() == rows_of_batch_) {
        share_sum_ += counter_.largest_share();
        ++figures_.batches;
      }
    }
    // Pairs are (0, 1), (2, 3), ... of a shard. Different shards watch different pairs; otherwise small shards would
    // have too many.
    const std::uint64_t pair = s.sample.index / 2;
    if (((pair + s.sample.shard) & pair_mask_) == 0) watch(s);
  }

  /// Returns the figures so far.
  shuffle_quality_figures figures() const noexcept {
    shuffle_quality_figures f = figures_;
    if (f.batches > 0) f.share = share_sum_ / static_cast<double>(f.batches);
    if (f.neighbors > 0) f.neighbor_distance = distance_sum_ / static_cast<double>(f.neighbors);
    return f;
  }

 private:
  static constexpr std::uint64_t watched_pairs = 4'096, watched_batches = 1'024;

  void begin_batch(const ordered_sample& first) {
    const std::uint64_t batch = first.position / plan_->settings().global_batch;
    counter_.clear();
    epoch_ = first.epoch;
    batch_begin_ = batch * plan_->settings().global_batch;
    batch_is_watched_ = (batch & batch_mask_) == 0;
    rows_of_batch_ = plan_->rows(batch, world_);
  }

  void watch(const ordered_sample& s) {
    if (s.pass != pass_) {
      half_seen_.clear();
      pass_ = s.pass;
    }
    const std::uint64_t number = plan_->spot_of(s.epoch, s.position).number;
    const auto [first, is_first] = half_seen_.try_emplace(sample_id(s.sample.shard, s.sample.index / 2), number);
    if (is_first) return;
    distance_sum_ += static_cast<double>(number - first->second);
    ++figures_.neighbors;
    half_seen_.erase(first);
  }

  const exact_order* plan_;
  world world_;
  shard_counter counter_;
  std::unordered_map<std::uint64_t, std::uint64_t> half_seen_;   // by pair: ordinal of its first sample
  std::uint64_t epoch_ = ~std::uint64_t{0}, pass_ = 0, batch_begin_ = 0;
  bool batch_is_watched_ = false;
  std::size_t rows_of_batch_ = 0;
  std::uint64_t pair_mask_ = 0, batch_mask_ = 0;
  double share_sum_ = 0, distance_sum_ = 0;
  shuffle_quality_figures figures_;
};

}}}  // namespace millrace::detail
