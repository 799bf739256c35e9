// Defines the members of the templates in shard_read_stage.hpp.
#pragma once

#include <millrace/read/shard_read_stage.hpp>

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
  this->read_into(order_, lock, {.from = next, .most = samples_per_advance, .in_turn = true}, this->read_by_advance_);
  order_.pass_on();
  return true;
}

template <class Source>
MILLRACE_INLINE void shard_read_stage<Source>::set_active(const concurrency_counts& open) {
  limit_.open(open.reads);
  tell_news();
}

template <class Source>
MILLRACE_INLINE void shard_read_stage<Source>::work(std::size_t thread) {
  chunk read;
  std::unique_lock lock(mutex_);
  while (!stopped_.load()) {
    try {
      work_until_stopped(thread, lock, read);
    } catch (...) {
      // Under the same lock: no other thread may pass on what comes behind a sample that was lost.
      if (!lock.owns_lock()) lock.lock();
      order_.finish(located_by([] { return error_location{.stage = "source"}; }));
      next_->publish();
      tell_news();
    }
  }
}

template <class Source>
MILLRACE_INLINE void shard_read_stage<Source>::work_until_stopped(
    std::size_t thread, std::unique_lock<std::mutex>& lock, chunk& read) {
  while (!stopped_.load()) {
    if (limit_.closed(thread)) {
      lock.unlock();
      tell_news();   // the other threads must act on the news that woke this one
      limit_.rest(thread, stopped_);
      lock.lock();
      continue;
    }
    const std::uint64_t seen = news_count_.load();
    const bool still = stand_still();
    if (shard* const next = shard_to_read()) read_shard(lock, {thread, next}, read);
    else sleep(lock, seen, still);
  }
}

template <class Source>
MILLRACE_INLINE void shard_read_stage<Source>::read_shard(std::unique_lock<std::mutex>& lock, job j, chunk& read) {
  while (!j.from->done && !stopped_.load() && !order_.finished()) {
    if (limit_.closed(j.thread)) {
      left_.push_back(j.from);   // another thread goes on with it
      return;
    }
    const std::uint64_t seen = news_count_.load();
    const bool still = stand_still();
    // One look serves both decisions. Between two looks workers may free bytes; the thread would then sleep without
    // asking to be woken when bytes are free.
    const bool enough_bytes = read_ahead() >= ahead_.bytes();
    if (!left_.empty()) swap_for_left_shard(j.from, enough_bytes);
    if (may_read(*j.from, enough_bytes)) {
      // If this read takes long, another thread passes on waiting samples.
      if (expect_room() || still)
        this->read_into(order_, lock, {j.from, chunk_samples, j.from == order_.front()}, read);
    } else {
      j.from->reader_waits = true;
      if (enough_bytes) {
        bytes_wanted_ = true;
        ahead_.reached();
      }
      sleep(lock, seen, still);
      j.from->reader_waits = false;
    }
  }
}

template <class Source>
MILLRACE_INLINE auto shard_read_stage<Source>::shard_to_read() -> shard* {
  if (left_.empty()) return order_.open_shards() < 2 * limit_.open() ? order_.open_next() : nullptr;
  const auto front = std::find(left_.begin(), left_.end(), order_.front());
  const auto chosen = front != left_.end() ? front : left_.begin();
  shard* const found = *chosen;
  left_.erase(chosen);
  return found;
}

template <class Source>
MILLRACE_INLINE void shard_read_stage<Source>::swap_for_left_shard(shard*& mine, bool enough_bytes) {
  if (mine == order_.front()) return;
  const bool stuck = !may_read(*mine, enough_bytes);
  for (const bool only_front : {true, false})
    for (shard*& left : left_)
      if (only_front ? left == order_.front() && (stuck || may_read(*left, enough_bytes))
                     : stuck && may_read(*left, enough_bytes))
        return std::swap(mine, left);
}

template <class Source>
MILLRACE_INLINE bool shard_read_stage<Source>::may_read(const shard& from, bool enough_bytes) const {
  // Samples that go to the workers at once need no queue beside a full input.
  const bool counts_input = order_.gives_at_once(from) && !order_.had_room();
  const std::uint64_t queued = from.samples.size() + (counts_input ? next_->backlog() : 0);
  if (!enough_bytes && queued < max_queued) return true;
  return &from == order_.front() && from.samples.empty() && next_->backlog() == 0;
}

template <class Source>
MILLRACE_INLINE void shard_read_stage<Source>::tell_news() noexcept {
  news_count_.fetch_add(1);
  news_.ring();
}

template <class Source>
MILLRACE_INLINE bool shard_read_stage<Source>::stand_still() {
  next_->publish();   // else the samples that were put last would not count
  const bool drained = next_->backlog() == 0;
  return !pass_on_and_tell() && drained;
}

template <class Source>
MILLRACE_INLINE bool shard_read_stage<Source>::pass_on_and_tell() {
  const bool moved = order_.pass_on();
  passed_on_.store(order_.passed_on(), std::memory_order_relaxed);
  bool tell = bytes_wanted_ && read_ahead() < ahead_.bytes() / 4 * 3;
  if (tell) bytes_wanted_ = false;
  if (shard* const front = order_.front(); front && front->reader_waits) {
    const std::size_t queued = front->samples.size();
    tell = tell || (!bytes_wanted_ && queued < max_queued / 2) || (queued == 0 && next_->backlog() == 0);
    if (tell) front->reader_waits = false;
  }
  if (order_.take_news() || tell) tell_news();
  return moved;
}

template <class Source>
MILLRACE_INLINE bool shard_read_stage<Source>::expect_room() {
  if (order_.had_room() && !bytes_wanted_) return true;
  return next_->backlog() > 0 && this->ask_for_wake();
}

template <class Source>
MILLRACE_INLINE void shard_read_stage<Source>::sleep(std::unique_lock<std::mutex>& lock, std::uint64_t seen,
                                                     bool still) {
  if (!expect_room() && !still) return;
  lock.unlock();
  news_.wait([&] { return one_woken_.exchange(false) || stopped_.load() || news_count_.load() != seen; });
  lock.lock();
}

}}}  // namespace millrace::detail
