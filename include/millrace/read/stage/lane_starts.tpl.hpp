// Defines the members of the templates in lane_starts.hpp.
#pragma once

#include <millrace/read/stage/lane_starts.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class Source>
MILLRACE_INLINE std::uint64_t shard_counts<Source>::of(std::size_t shard, std::uint64_t pass) {
  entry* found;
  {
    const std::lock_guard lock(mutex_);
    found = &entries_[number(shard, pass)];
  }
  const std::lock_guard lock(found->mutex);
  if (!found->known) {
    found->samples = read_through(shard, pass);
    found->known = true;
    counted_.fetch_add(1);
  }
  return found->samples;
}

template <class Source>
MILLRACE_INLINE bool shard_counts<Source>::knows(std::size_t shard, std::uint64_t pass) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(number(shard, pass));
  return found != entries_.end() && found->second.known;
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
    if (behind_damage_ && is_damage_of_source(std::current_exception())) {
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
MILLRACE_INLINE std::uint64_t counted_pass<Source>::given_in(std::uint64_t rounds) const noexcept {
  std::uint64_t given = 0;
  for (const lane& l : lanes_) given += std::min(rounds, l.known());
  return given;
}

template <class Source>
MILLRACE_INLINE std::uint64_t counted_pass<Source>::certain_rounds() const noexcept {
  std::uint64_t certain = ~std::uint64_t{0};
  for (const lane& l : lanes_)
    if (!l.complete()) certain = std::min(certain, l.known());
  return certain;
}

template <class Source>
MILLRACE_INLINE void counted_pass<Source>::count_to(std::uint64_t ordinal) {
  for (;;) {
    const std::uint64_t certain = certain_rounds(), given = given_in(certain);
    if (certain == ~std::uint64_t{0} || given >= ordinal) return;
    std::uint64_t going_on = 0;
    for (const lane& l : lanes_) going_on += !l.complete() || l.known() > certain;
    count_rounds(certain + (ordinal - given + going_on - 1) / going_on);
  }
}

template <class Source>
MILLRACE_INLINE void counted_pass<Source>::count_rounds(std::uint64_t rounds) {
  std::vector<lane*> unread;
  for (lane& l : lanes_) {
    while (wants(l, rounds) && counts_->knows(l.shards[l.ends.size()], pass_)) count_shard(l);
    if (wants(l, rounds)) unread.push_back(&l);
  }
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1)) < unread.size();) try {
        while (wants(*unread[i], rounds)) count_shard(*unread[i]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        error = std::current_exception();
        next.store(unread.size());
      }
  };
  std::vector<std::thread> threads;
  try {
    const std::size_t wanted = std::min<std::size_t>(options_->threads, unread.size());
    start_threads(threads, std::max<std::size_t>(wanted, 1) - 1, [&](std::size_t) { work(); });
  } catch (...) {
    // Fewer threads count as well.
  }
  work();
  for (auto& t : threads) t.join();
  if (error) std::rethrow_exception(error);
}

}}}  // namespace millrace::detail
