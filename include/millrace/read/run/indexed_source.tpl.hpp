// Defines the members of the templates in indexed_source.hpp.
#pragma once

#include <millrace/read/run/indexed_source.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class Data, class Plan>
MILLRACE_INLINE indexed_source<Data, Plan>::indexed_source(std::shared_ptr<Data> data, const Plan& plan, options o)
    : shared_(std::make_shared<shared>(std::move(data), plan, o)) {}

template <class Data, class Plan>
MILLRACE_INLINE std::size_t indexed_source<Data, Plan>::shards() const {
  const auto& s = *shared_;
  return static_cast<std::size_t>((s.plan.positions() - 1) / s.block + 1);
}

template <class Data, class Plan>
MILLRACE_INLINE std::size_t indexed_source<Data, Plan>::first_shard() const {
  return static_cast<std::size_t>(shared_->options.first_position / shared_->block);
}

template <class Data, class Plan>
MILLRACE_INLINE indexed_source<Data, Plan>::shared::shared(std::shared_ptr<Data> d, const Plan& p,
                                                           const indexed_source_options& o)
    : data(std::move(d)),
      plan(p),
      options(o),
      block(o.samples_per_block * o.world.size),
      cursor(plan, {.world = o.world, .epoch = o.first_epoch, .position = o.first_position}),
      next_epoch(o.first_epoch),
      next_shard(o.first_position / block),
      observed(plan, o.world) {}

template <class Data, class Plan>
MILLRACE_INLINE auto indexed_source<Data, Plan>::shared::planned(std::uint64_t shard, std::uint64_t epoch) -> samples {
  const std::lock_guard lock(mutex);
  const auto key = std::pair(epoch, shard);
  while (!ahead.contains(key)) plan_next();
  auto block_of_key = ahead.extract(key);
  return std::move(block_of_key.mapped());
}

template <class Data, class Plan>
MILLRACE_INLINE void indexed_source<Data, Plan>::shared::plan_next() {
  samples& result = ahead[{next_epoch, next_shard}];
  const std::uint64_t end = std::min(plan.positions(), (next_shard + 1) * block);
  result.reserve(static_cast<std::size_t>(options.samples_per_block));
  while (cursor.position() < end) {
    result.push_back(*cursor.next());
    observed.add(result.back());
  }
  for (const ordered_sample& s : result) {
    if (s.pass == announced_pass) continue;
    announced_pass = s.pass;
    announce_shards(s);
  }
  if (end < plan.positions()) {
    ++next_shard;
    return;
  }
  if (plan.rows(plan.batches() - 1, options.world) == 0) result.push_back(void_row());
  ++next_epoch;
  next_shard = 0;
  cursor.move_to(next_epoch, 0);
}

template <class Data, class Plan>
MILLRACE_INLINE void indexed_source<Data, Plan>::shared::announce_shards(const ordered_sample& first) const {
  if constexpr (observes && requires { data->expect_shards(std::span<const std::size_t>()); }) {
    // A uniform permutation needs each shard from the first sample to the last.
    const bool by_lanes = plan.settings().shuffled && !plan.permutes();
    const std::uint64_t number = plan.permutes() ? 0 : plan.spot_of(first.epoch, first.position).number;
    const std::uint64_t lanes = by_lanes ? plan.settings().lanes : 1, done = number / lanes;
    const std::uint64_t step = by_lanes ? plan.lane_step(options.world) : 1;
    const pass_layout layout = plan.layout_of(first.pass);
    std::vector<std::size_t> coming;
    for (std::uint64_t lane = number % step; lane < lanes; lane += step) {
      coming.clear();
      const std::uint64_t end = by_lanes ? plan.lane_begin(lane + 1) : layout.length();
      for (std::uint64_t at = done + (by_lanes ? plan.lane_begin(lane) : 0); at < end;) {
        const located_sample located = layout.find(at);
        coming.push_back(located.shard);
        at += plan.settings().counts[located.shard] - located.index;
      }
      data->expect_shards(coming);
    }
  }
}

template <class Data, class Plan>
MILLRACE_INLINE ordered_sample indexed_source<Data, Plan>::shared::void_row() const {
  ordered_sample last = plan.sample_at(next_epoch, plan.positions() - 1);
  last.position = (plan.batches() - 1) * plan.settings().global_batch + options.world.rank;
  return last;
}

}}}  // namespace millrace::detail
