// Definitions for shuffle_quality.hpp.
#pragma once

#include <millrace/order/shuffle_quality.hpp>

#include <bit>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE shuffle_quality::shuffle_quality(const exact_order& plan, const world& mine)
    : plan_(&plan), world_(mine), counter_(plan.settings().counts.size()) {
  // The mean distance of two random ordinals out of n is (n + 1) / 3.
  statistics_.ideal_neighbor_distance = static_cast<double>(plan.pass_length() + 1) / 3;
  pair_mask_ = std::bit_ceil(plan.samples() / 2 / watched_pairs + 1) - 1;
  batch_mask_ = std::bit_floor(plan.pass_length() / plan.settings().global_batch / watched_batches + 1) - 1;
}

MILLRACE_INLINE void shuffle_quality::add(const ordered_sample& s) {
  if (s.position - batch_begin_ >= plan_->settings().global_batch || s.epoch != epoch_) begin_batch(s);
  if (batch_is_watched_) {
    counter_.add(s.sample.shard);
    if (counter_.rows() == rows_of_batch_) {
      share_sum_ += counter_.largest_share();
      ++statistics_.batches;
    }
  }
  // Pairs are the samples (0, 1), (2, 3), ... of a shard. The selection of pairs depends on the shard. Otherwise pair 0
  // of each shard would be selected, which is too many pairs in a set of small shards.
  const std::uint64_t pair = s.sample.index / 2;
  if (((pair + s.sample.shard) & pair_mask_) == 0) watch(s);
}

MILLRACE_INLINE shuffle_statistics shuffle_quality::statistics() const noexcept {
  shuffle_statistics f = statistics_;
  if (f.batches > 0) f.share = share_sum_ / static_cast<double>(f.batches);
  if (f.neighbors > 0) f.neighbor_distance = distance_sum_ / static_cast<double>(f.neighbors);
  return f;
}

MILLRACE_INLINE void shuffle_quality::begin_batch(const ordered_sample& first) {
  const std::uint64_t batch = first.position / plan_->settings().global_batch;
  counter_.clear();
  epoch_ = first.epoch;
  batch_begin_ = batch * plan_->settings().global_batch;
  batch_is_watched_ = (batch & batch_mask_) == 0;
  rows_of_batch_ = plan_->rows(batch, world_);
}

MILLRACE_INLINE void shuffle_quality::watch(const ordered_sample& s) {
  if (s.pass != pass_) {
    first_of_pair_.clear();
    pass_ = s.pass;
  }
  const std::uint64_t number = plan_->spot_of(s.epoch, s.position).number;
  const auto [first, is_first] = first_of_pair_.try_emplace(sample_id(s.sample.shard, s.sample.index / 2), number);
  if (is_first) return;
  distance_sum_ += static_cast<double>(number - first->second);
  ++statistics_.neighbors;
  first_of_pair_.erase(first);
}

}}}   // namespace millrace::detail
