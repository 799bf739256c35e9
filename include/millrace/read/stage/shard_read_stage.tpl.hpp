// Defines the members of the templates in shard_read_stage.hpp.
#pragma once

#include <millrace/read/stage/shard_read_stage.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class Source>
MILLRACE_INLINE shard_read_stage<Source>::shard_read_stage(const Source& source, const shard_order& order, options o,
                                                           sample_sink<item>& next)
    : read_stage_base<Source>(source, next, {o.threads, o.read_ahead_bytes}),
      options_(o),
      order_(order,
             {.epochs = o.epochs, .window_bytes = o.window_bytes, .first_epoch = o.first_epoch,
              .first_shard = o.first_shard, .first_sample = o.first_sample, .first_ordinal = o.first_ordinal,
              .log = o.log, .take = o.take, .lost = o.lost},
             next) {}

template <class Source>
MILLRACE_INLINE bool shard_read_stage<Source>::advance() {
  std::unique_lock lock(mutex_);
  if (order_.pass_on()) return true;
  shard* const next = order_.front() ? order_.front() : order_.open_next();
  if (!next || next->done || order_.finished()) return false;
  this->read_into(lock, {.of = &order_, .from = next, .most = samples_per_advance, .in_turn = true},
                  this->read_by_advance_);
  order_.pass_on();
  return true;
}

template <class Source>
MILLRACE_INLINE bool shard_read_stage<Source>::pass_on() {
  const bool moved = order_.pass_on();
  passed_on_.store(order_.passed_on(), std::memory_order_relaxed);
  return moved;
}

template <class Source>
MILLRACE_INLINE auto shard_read_stage<Source>::find_work() -> portion {
  shard* const next = find_shard();
  return {&order_, next, chunk_samples, next == order_.front()};
}

template <class Source>
MILLRACE_INLINE auto shard_read_stage<Source>::find_shard() -> shard* {
  if (order_.finished()) return nullptr;
  const bool full = ahead_is_full();
  const auto readable = [&](const shard& s) { return may_read(s, full); };
  if (shard* const open = order_.first_idle(readable)) return open;
  if (order_.unfinished_shards() >= limit_.open() || order_.open_shards() >= 2 * limit_.open()) return nullptr;
  shard* const opened = order_.open_next();
  return opened && readable(*opened) ? opened : nullptr;
}

template <class Source>
MILLRACE_INLINE bool shard_read_stage<Source>::ahead_is_full() {
  const std::size_t ahead = read_ahead();
  const bool full = ahead >= ahead_.bytes();
  if (full) {
    waits_for_bytes_ = true;
    ahead_.reached();
  } else if (ahead < ahead_.bytes() / 4 * 3) {
    waits_for_bytes_ = false;
  }
  return full;
}

template <class Source>
MILLRACE_INLINE bool shard_read_stage<Source>::may_read(const shard& from, bool full) const {
  // While the input of the workers is full, its samples count as queued samples of the shard that bypasses its queue.
  const bool counts_input = order_.bypasses_queue(from) && !order_.had_space();
  const std::uint64_t queued = from.samples.size() + (counts_input ? next_->backlog() : 0);
  const bool in_turn = &from == order_.front();
  if (!(in_turn ? full : waits_for_bytes_) && queued < max_queued) return true;
  return in_turn && from.samples.empty() && next_->backlog() == 0;
}

}}}  // namespace millrace::detail
