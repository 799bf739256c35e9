// Defines the members of the templates in lane_starts.hpp.
#pragma once

#include <millrace/read/stage/lane_starts.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class Source>
MILLRACE_INLINE std::uint64_t shard_counts<Source>::of(std::size_t shard, std::uint64_t pass) {
  entry* e;
  {
    const std::lock_guard lock(mutex_);
    e = &entries_[number(shard, pass)];
  }
  const std::lock_guard lock(e->mutex);
  if (!e->is_counted) {
    e->samples = read_through(shard, pass);
    e->is_counted = true;
    counted_.fetch_add(1);
  }
  return e->samples;
}

template <class Source>
MILLRACE_INLINE bool shard_counts<Source>::has(std::size_t shard, std::uint64_t pass) {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(number(shard, pass));
  return it != entries_.end() && it->second.is_counted;
}

template <class Source>
MILLRACE_INLINE std::uint64_t shard_counts<Source>::number(std::size_t shard, std::uint64_t pass) const {
  return (same_every_pass ? 0 : pass) * source_->shards() + shard;
}

template <class Source>
MILLRACE_INLINE std::uint64_t shard_counts<Source>::read_through(std::size_t shard, std::uint64_t pass) const {
  std::uint64_t samples = 0;
  try {
    auto reader = source_->open(shard, pass);
    while (reader.next()) ++samples;
    return samples;
  } catch (...) {
    if (tolerates_damage_ && is_damage_of_source(std::current_exception())) {
      if constexpr (requires { source_->stated_samples(shard); })
        return std::max(samples, source_->stated_samples(shard));
      return samples;
    }
    std::rethrow_exception(located_by([&] {
      error_location at{.stage = "source"};
      if constexpr (requires { source_->shard_name(shard); }) at.shard = source_->shard_name(shard);
      return at;
    }));
  }
}

template <class Source>
MILLRACE_INLINE counted_pass<Source>::counted_pass(const lane_starts_options& o, std::uint64_t pass,
                                                   shard_counts<Source>& counts)
    : options_(&o), pass_(pass), counts_(&counts), lanes_(o.lanes / o.world.size) {
  const std::vector<std::size_t> order = shard_order(o.order).shards_of(pass);
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    for (std::size_t at = o.world.rank + i * o.world.size; at < order.size(); at += o.lanes)
      lanes_[i].shards.push_back(order[at]);
}

template <class Source>
MILLRACE_INLINE std::uint64_t counted_pass<Source>::delivered_in(std::uint64_t rounds) const noexcept {
  std::uint64_t delivered = 0;
  for (const lane& l : lanes_) delivered += std::min(rounds, l.counted_samples());
  return delivered;
}

template <class Source>
MILLRACE_INLINE std::uint64_t counted_pass<Source>::certain_rounds() const noexcept {
  std::uint64_t certain = ~std::uint64_t{0};
  for (const lane& l : lanes_)
    if (!l.complete()) certain = std::min(certain, l.counted_samples());
  return certain;
}

template <class Source>
MILLRACE_INLINE void counted_pass<Source>::count_to(std::uint64_t ordinal) {
  for (;;) {
    const std::uint64_t certain = certain_rounds(), delivered = delivered_in(certain);
    if (certain == ~std::uint64_t{0} || delivered >= ordinal) return;
    std::uint64_t active = 0;
    for (const lane& l : lanes_) active += !l.complete() || l.counted_samples() > certain;
    count_rounds(certain + (ordinal - delivered + active - 1) / active);
  }
}

template <class Source>
MILLRACE_INLINE void counted_pass<Source>::count_rounds(std::uint64_t rounds) {
  std::vector<lane*> unread;
  for (lane& l : lanes_) {
    while (needs_count(l, rounds) && counts_->has(l.shards[l.ends.size()], pass_)) count_shard(l);
    if (needs_count(l, rounds)) unread.push_back(&l);
  }
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1)) < unread.size();) try {
        while (needs_count(*unread[i], rounds)) count_shard(*unread[i]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        error = std::current_exception();
        next.store(unread.size());
      }
  };
  std::vector<std::thread> threads;
  try {
    const std::size_t count = std::min<std::size_t>(options_->threads, unread.size());
    start_threads(threads, std::max<std::size_t>(count, 1) - 1, [&](std::size_t) { work(); });
  } catch (...) {
    // If no more threads can be started, the existing threads are sufficient.
  }
  work();
  for (auto& t : threads) t.join();
  if (error) std::rethrow_exception(error);
}

}}}  // namespace millrace::detail
