// The read stage for most sources. I/O threads read several shards of the source at once. The stage passes on the
// samples in order.
//
//   mr::detail::shard_read_stage<mr::detail::shards_source> in(source, order, options, first_segment.entrance());
//   in.start();
//   in.stop();  in.join();      // when the session ends
//
// Any free I/O thread may read a shard. reorder_buffer.hpp puts the samples in order. A thread reads only while the
// bytes that are read ahead are below the limit. If the workers have no samples, a thread may still read one chunk of
// the current shard (the shard of the next sample). This guarantees progress.
// Threads: `threads` I/O threads. With 0 threads, advance() reads on the calling thread. A read blocks only the thread
// that reads.
#pragma once

#include <millrace/read/stage/read_stage_base.hpp>

#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of shard_read_stage.
struct shard_read_stage_options {
  unsigned threads = 4;   ///< number of I/O threads; with 0, advance() reads
  std::uint64_t epochs = 1;
  std::size_t read_ahead_bytes = std::size_t{256} << 20;   ///< maximum bytes of samples that no worker has claimed
  std::size_t window_bytes = ~std::size_t{0};              ///< maximum bytes in the shuffle window
  std::uint64_t first_epoch = 0;
  std::size_t first_shard = 0;                         ///< index in the order of the first epoch
  std::uint64_t first_sample = 0, first_ordinal = 0;   ///< see reorder_buffer_options
  replay_log* log = nullptr;
  std::uint64_t take = ~std::uint64_t{0};   ///< maximum number of samples to deliver in each epoch
  lost_shards* lost = nullptr;              ///< lets the run continue after a lost shard; may be null
};

/// Reads the shards of a run with several I/O threads.
template <class Source>
class shard_read_stage final : public read_stage_base<Source> {
 public:
  using item = typename Source::item;
  using options = shard_read_stage_options;

  shard_read_stage(const Source& source, const shard_order& order, options o, sample_sink<item>& next);
  MILLRACE_RARE ~shard_read_stage() override = default;

  void count_into(event_counts& counts) noexcept override { order_.count_into(counts); }

  /// Reads a few samples on the calling thread, or passes on waiting samples. Returns false if there was nothing to do.
  bool advance() override;

  std::size_t read_ahead_bytes() const noexcept override { return read_ahead(); }

 private:
  using shard = typename reorder_buffer<Source>::shard;
  using typename read_stage_base<Source>::portion;
  using read_stage_base<Source>::chunk_samples;
  using read_stage_base<Source>::next_;
  using read_stage_base<Source>::passed_on_;
  using read_stage_base<Source>::limit_;
  using read_stage_base<Source>::ahead_;
  using read_stage_base<Source>::mutex_;

  static constexpr std::size_t max_queued = 4'096;
  static constexpr std::size_t samples_per_advance = 8;   // maximum; if the workers are idle, a slow read ends earlier

  // ---- under mutex_ ----

  bool pass_on() override;
  portion find_work() override;
  bool needs_space() override { return !order_.had_space() || waits_for_bytes_; }
  MILLRACE_RARE void finish(std::exception_ptr error) override { order_.finish(std::move(error)); }

  /// Returns the first shard in order that a thread may read now, or null. May open the shard.
  shard* find_shard();
  bool may_read(const shard& from, bool full) const;
  /// Returns whether the bytes that are read ahead have reached the limit. If true, the shards after the current shard
  /// are not read until a quarter of the limit is free.
  bool ahead_is_full();
  std::size_t read_ahead() const noexcept { return order_.queued_bytes() + next_->held_bytes(); }

  const options options_;
  reorder_buffer<Source> order_;
  bool waits_for_bytes_ = false;   // readers of later shards wait, because too many bytes are read ahead
};

template <class Source>
MILLRACE_INLINE shard_read_stage<Source>::shard_read_stage(const Source& source, const shard_order& order, options o,
                                                           sample_sink<item>& next)
    : read_stage_base<Source>(source, next, {o.threads, o.read_ahead_bytes}),
      options_(o),
      order_(order,
             {.epochs = o.epochs,
              .window_bytes = o.window_bytes,
              .first_epoch = o.first_epoch,
              .first_shard = o.first_shard,
              .first_sample = o.first_sample,
              .first_ordinal = o.first_ordinal,
              .log = o.log,
              .take = o.take,
              .lost = o.lost},
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
  // Without a shuffle, samples of the current shard go directly into the workers' input. While this input is full, the
  // samples in it count as queued samples of the current shard.
  const bool counts_input = order_.bypasses_queue(from) && !order_.had_space();
  const std::uint64_t queued = from.samples.size() + (counts_input ? next_->backlog() : 0);
  const bool in_turn = &from == order_.front();
  if (!(in_turn ? full : waits_for_bytes_) && queued < max_queued) return true;
  return in_turn && from.samples.empty() && next_->backlog() == 0;
}

}}}   // namespace millrace::detail
