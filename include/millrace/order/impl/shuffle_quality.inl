// Definitions for shuffle_quality.hpp.
#pragma once

#include <millrace/order/shuffle_quality.hpp>

#include <millrace/order/shard_order.hpp>

#include <bit>
#include <cmath>
#include <unordered_set>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE shuffle_shard_counts::shuffle_shard_counts(std::size_t shards) : rows_(shards, 0) {}

MILLRACE_INLINE void shuffle_shard_counts::add(std::uint64_t shard) {
  std::uint32_t& rows = rows_[shard];
  if (rows++ == 0) counted_shards_.push_back(shard);
  most_ = std::max(most_, rows);
  ++all_;
}

MILLRACE_INLINE double shuffle_shard_counts::largest_share() const noexcept {
  return all_ > 0 ? static_cast<double>(most_) / static_cast<double>(all_) : 0;
}

MILLRACE_INLINE void shuffle_shard_counts::clear() noexcept {
  for (const std::uint64_t shard : counted_shards_) rows_[shard] = 0;
  counted_shards_.clear();
  all_ = 0;
  most_ = 0;
}

MILLRACE_RARE shuffle_forecast::shuffle_forecast(const exact_order& plan, const world& mine)
    : plan_(&plan), world_(mine) {
  plan.check(mine);
  const std::size_t shards = plan.settings().counts.size();
  for (std::size_t pass = 0; pass < std::clamp<std::size_t>(max_places / shards, 1, 64); ++pass)
    layouts_.push_back(plan.layout_of(pass));
  const std::size_t full = plan.settings().global_batch / mine.size;
  rows_ = static_cast<std::size_t>(std::min<std::uint64_t>(full, plan.samples()));
  // Each draw in a set of many shards misses the CPU's caches several times.
  rounds_ = std::clamp<std::size_t>(draws / rows_ / (shards > 100'000 ? 8 : 1), 64, 2'000);
}

MILLRACE_RARE double shuffle_forecast::ideal_share() const {
  shuffle_shard_counts counter(plan_->settings().counts.size());
  const pass_layout everything({.counts = plan_->settings().counts, .shards = as_listed()});
  const std::uint64_t all = plan_->samples();
  double sum = 0;
  std::unordered_set<std::uint64_t> drawn_numbers;
  for (std::size_t round = 0; round < rounds_; ++round) {
    rng random = stream(round, 0);
    drawn_numbers.clear();
    counter.clear();
    // Without replacement, after Floyd (Bentley, Programming Pearls, CACM 30(9), 1987).
    for (std::uint64_t last = all - rows_; last < all; ++last) {
      std::uint64_t number = random.below(last + 1);
      if (!drawn_numbers.insert(number).second) drawn_numbers.insert(number = last);
      counter.add(everything.find(number).shard);
    }
    sum += counter.largest_share();
  }
  return sum / static_cast<double>(rounds_);
}

MILLRACE_RARE std::optional<std::size_t> shuffle_forecast::window_within(double excess) const {
  const double target = ideal_share() * (1 + excess);
  // The complete data set. In an order of version 1, a window of 32 times as many samples has about the same effect.
  const std::size_t widest = static_cast<std::size_t>(plan_->samples()) * (plan_->settings().permutes ? 1 : 32);
  // The search begins at the window of the order, which is the most likely result.
  std::size_t too_small = 1, enough = std::clamp<std::size_t>(plan_->settings().window, 1, widest);
  while (share(enough) > target) {
    if (enough >= widest) return std::nullopt;
    too_small = enough;
    enough = std::min(std::max(2 * enough, plan_->settings().lanes), widest);
  }
  while (enough - too_small > enough / 20) {
    const std::size_t middle = too_small + (enough - too_small) / 2;
    (share(middle) > target ? too_small : enough) = middle;
  }
  return enough;
}

MILLRACE_INLINE std::vector<std::size_t> shuffle_forecast::as_listed() const {
  return shard_order({.shards = plan_->settings().counts.size()}).shards_of(0);
}

MILLRACE_INLINE rng shuffle_forecast::stream(std::size_t round, std::uint64_t purpose) noexcept {
  return rng({.seed = 0, .epoch = round, .sample = purpose, .stage = ~std::uint64_t{3}});
}

MILLRACE_RARE double shuffle_forecast::mean_share(const exact_order& plan) const {
  shuffle_shard_counts counter(plan.settings().counts.size());
  const std::uint64_t batch = std::min<std::uint64_t>(plan.settings().global_batch, plan.pass_length());
  const std::size_t lanes = plan.settings().lanes, ranks = world_.size;
  // One rank has every position p with p mod ranks = rank. In each of its lanes, these are ordinals with a distance of
  // `step`.
  const std::uint64_t step = ranks / plan.lane_step(world_), turn = lanes * step;
  double sum = 0;
  for (std::size_t round = 0; round < rounds_; ++round) {
    rng random = stream(round, 1);
    const std::uint64_t first = random.below(plan.pass_length() / batch) * batch, end = first + batch;
    counter.clear();
    const std::uint64_t pass = round % layouts_.size();
    const auto count = [&](std::uint64_t number) { counter.add(layouts_[pass].find(number).shard); };
    if (!plan.settings().shuffled)
      for (std::uint64_t p = first + world_.rank; p < end; p += ranks) count(p);
    else
      for (std::uint64_t p = first + world_.rank; p < std::min(end, first + turn); p += ranks)
        count_in_lane(
            plan,
            {.pass = pass, .lane = p % lanes, .ordinal = p / lanes, .rows = (end - p - 1) / turn + 1, .step = step},
            random, count);
    sum += counter.largest_share();
  }
  return sum / static_cast<double>(rounds_);
}

MILLRACE_RARE double shuffle_forecast::key_of(double delivered, double window, double all) noexcept {
  if (delivered > all / 2) return all + window - key_of(all - delivered, window, all);
  const double start = std::min(window, all), by_start = start * start / (2 * window);
  return delivered < by_start ? std::sqrt(2 * window * delivered) : start + delivered - by_start;
}

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
