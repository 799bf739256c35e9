// The read stage: I/O threads read several shards of the source at once, and pass on their samples in order.
//
//   mr::detail::shard_read_stage<mr::detail::shards_source> in(source, order, options, first_segment.entrance());
//   in.start();
//   in.stop();  in.join();      // when the session ends
//
// Any free I/O thread may read a shard; reorder_buffer.hpp puts the samples in order.
// A thread reads only while the bytes that are read ahead are below their bound. Only the shard whose turn it is may
// exceed the bound. It may do so while the workers have nothing to take, by one chunk at a time. So there is always
// progress.
// Threads: `threads` I/O threads; with 0 threads advance() reads on the caller. Reads block only these threads.
#pragma once

#include <millrace/measure/trace_range.hpp>
#include <millrace/read/read_stage_base.hpp>
#include <millrace/sync/doorbell.hpp>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of shard_read_stage.
struct shard_read_stage_options {
  unsigned threads = 4;   ///< 0: no threads, advance() reads
  std::uint64_t epochs = 1;
  std::size_t read_ahead_bytes = std::size_t{256} << 20;   ///< bound on samples that no worker has taken yet
  std::size_t window_bytes = ~std::size_t{0};              ///< bound on what the shuffle window holds
  std::uint64_t first_epoch = 0;
  std::size_t first_shard = 0;                             ///< index in that epoch's order
  std::uint64_t first_sample = 0, first_ordinal = 0;         ///< as in reorder_buffer_options
  replay_log* log = nullptr;
  std::uint64_t take = ~std::uint64_t{0};                  ///< samples to give of each epoch
};

/// Reads the shards of a run ahead with several I/O threads.
template <class Source>
class shard_read_stage final : public read_stage_base<Source>, public space_listener {
 public:
  using item = typename Source::item;
  using options = shard_read_stage_options;

  shard_read_stage(const Source& source, const shard_order& order, options o, sample_sink<item>& next)
      : read_stage_base<Source>(source, next, o.threads),
        options_(o),
        order_(order,
               {.epochs = o.epochs, .window_bytes = o.window_bytes, .first_epoch = o.first_epoch,
                .first_shard = o.first_shard, .first_sample = o.first_sample, .first_ordinal = o.first_ordinal,
                .log = o.log, .take = o.take},
               next) {
    next.set_listener(this);
  }

  void count_into(event_counts& counts) noexcept override { order_.count_into(counts); }
  void start() override {
    for (unsigned i = 0; i < options_.threads; ++i) threads_.emplace_back([this, i] { work(i); });
  }

  /// Reads one sample on the caller, or passes on waiting samples. Returns false if there was nothing to do.
  bool advance() override {
    std::unique_lock lock(mutex_);
    if (order_.pass_on()) return true;
    shard* const next = order_.front() ? order_.front() : order_.open_next();
    if (!next || next->done || order_.finished()) return false;
    read_and_append(lock, *next, read_by_advance_, 1);
    order_.pass_on();
    return true;
  }

  void space_freed() noexcept override {
    if (next_->backlog() >= wake_below_.load() || wake_below_.exchange(0) == 0) return;
    room_news_.store(true);
    news_.ring_one();
  }

  void set_active(const concurrency_counts& open) override {
    limit_.open(open.reads);
    tell_news();
  }
  void stop() noexcept override {
    stopped_.store(true);
    tell_news();
    limit_.wake();
  }
  void join() noexcept override {
    for (auto& t : threads_)
      if (t.joinable()) t.join();
  }

  std::size_t threads() const noexcept override { return options_.threads == 0 ? 0 : limit_.open(); }
  std::size_t read_ahead_bytes() const noexcept override { return read_ahead(); }

 private:
  using shard = typename reorder_buffer<Source>::shard;
  using typename read_stage_base<Source>::chunk;
  using read_stage_base<Source>::chunk_samples;
  using read_stage_base<Source>::next_;
  using read_stage_base<Source>::passed_on_;
  using read_stage_base<Source>::stopped_;
  using read_stage_base<Source>::read_chunk;
  using read_stage_base<Source>::limit_;

  static constexpr std::size_t max_queued = 16'384;

  // ---- without mutex_ ----

  void work(std::size_t thread) {
    detail::name_worker_thread("millrace-read");
    chunk read;
    std::unique_lock lock(mutex_);
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

  // ---- under mutex_ ----

  struct job {
    std::size_t thread;
    shard* from;
  };

  void read_shard(std::unique_lock<std::mutex>& lock, job j, chunk& read) {
    while (!j.from->done && !stopped_.load() && !order_.finished()) {
      if (limit_.closed(j.thread)) {
        left_.push_back(j.from);   // another thread goes on with it
        return;
      }
      const std::uint64_t seen = news_count_.load();
      const bool still = stand_still();
      // One look serves both decisions. Between two looks workers may free bytes; the thread would then sleep without
      // asking to be woken when bytes are free.
      const bool enough_bytes = read_ahead() >= options_.read_ahead_bytes;
      if (!left_.empty()) swap_for_left_shard(j.from, enough_bytes);
      if (may_read(*j.from, enough_bytes)) {
        // If this read takes long, another thread passes on waiting samples.
        if (expect_room() || still) read_and_append(lock, *j.from, read, chunk_samples);
      } else {
        j.from->reader_waits = true;
        bytes_wanted_ = bytes_wanted_ || enough_bytes;
        sleep(lock, seen, still);
        j.from->reader_waits = false;
      }
    }
  }

  /// Returns the shard to read next. A shard that its reader left comes before an unopened one.
  shard* shard_to_read() {
    if (left_.empty()) return order_.open_shards() < 2 * limit_.open() ? order_.open_next() : nullptr;
    const auto front = std::find(left_.begin(), left_.end(), order_.front());
    const auto chosen = front != left_.end() ? front : left_.begin();
    shard* const found = *chosen;
    left_.erase(chosen);
    return found;
  }
  /// Swaps the shard of a reader for a left one. The shard whose turn it is must always have a reader.
  /// A reader that cannot go on with its own shard takes one that can be read.
  void swap_for_left_shard(shard*& mine, bool enough_bytes) {
    if (mine == order_.front()) return;
    const bool stuck = !may_read(*mine, enough_bytes);
    for (const bool only_front : {true, false})
      for (shard*& left : left_)
        if (only_front ? left == order_.front() && (stuck || may_read(*left, enough_bytes))
                       : stuck && may_read(*left, enough_bytes))
          return std::swap(mine, left);
  }

  void read_and_append(std::unique_lock<std::mutex>& lock, shard& from, chunk& read, std::size_t most) {
    const bool in_turn = &from == order_.front();
    lock.unlock();
    read_chunk(from, read, most, in_turn);
    lock.lock();
    order_.append(from, read.samples);
    if (!read.more) order_.end(from, std::exchange(read.error, nullptr));
    read.samples.clear();
    read.bytes = 0;
    read.more = true;
  }

  bool may_read(const shard& from, bool enough_bytes) const {
    if (!enough_bytes && from.samples.size() < max_queued) return true;
    return &from == order_.front() && from.samples.empty() && next_->backlog() == 0;
  }
  std::size_t read_ahead() const noexcept { return order_.queued_bytes() + next_->held_bytes(); }

  /// Wakes every thread.
  void tell_news() noexcept {
    news_count_.fetch_add(1);
    news_.ring();
  }

  /// Passes on waiting samples. Returns true if there were none, and the workers have nothing to take either.
  /// In that case no worker will ever free the space that a thread here waits for.
  bool stand_still() {
    next_->publish();   // else the samples that were put last would not count
    const bool drained = next_->backlog() == 0;
    return !pass_on_and_tell() && drained;
  }

  /// Passes on waiting samples. Wakes waiting readers when well below the bound that stopped them, not at each sample.
  bool pass_on_and_tell() {
    const bool moved = order_.pass_on();
    passed_on_.store(order_.passed_on(), std::memory_order_relaxed);
    bool tell = bytes_wanted_ && read_ahead() < options_.read_ahead_bytes / 4 * 3;
    if (tell) bytes_wanted_ = false;
    if (shard* const front = order_.front(); front && front->reader_waits) {
      const std::size_t queued = front->samples.size();
      tell = tell || (!bytes_wanted_ && queued < max_queued / 2) || (queued == 0 && next_->backlog() == 0);
      if (tell) front->reader_waits = false;
    }
    if (order_.take_news() || tell) tell_news();
    return moved;
  }

  /// Asks the workers to wake any one thread, once, when they have taken half of their backlog. A wake-up at every
  /// sample would cost the workers too much. The woken thread passes on waiting samples, and wakes the threads that
  /// wait for that. Returns false if there is space already.
  bool expect_room() {
    if (order_.had_room() && !bytes_wanted_) return true;
    const std::uint64_t backlog = next_->backlog();
    if (backlog == 0) return false;
    wake_below_.store(backlog / 2 + 1);
    return next_->backlog() >= backlog / 2 + 1;
  }

  /// Sleeps until there is news since `seen`, or space for waiting samples.
  void sleep(std::unique_lock<std::mutex>& lock, std::uint64_t seen, bool still) {
    if (!expect_room() && !still) return;
    lock.unlock();
    // The thread that takes the news of free space acts on it, so waking one thread is enough.
    news_.wait([&] { return room_news_.exchange(false) || stopped_.load() || news_count_.load() != seen; });
    lock.lock();
  }

  const options options_;
  std::mutex mutex_;
  reorder_buffer<Source> order_;
  bool bytes_wanted_ = false;   // a reader waits for fewer bytes to be read ahead
  std::vector<shard*> left_;    // shards left by readers that may not read any more
  chunk read_by_advance_;

  std::atomic<std::uint64_t> news_count_{0}, wake_below_{0};
  std::atomic<bool> room_news_{false};
  doorbell news_;
  std::vector<std::thread> threads_;
};

/// Returns a new shard_read_stage that passes its samples on to `next`.
template <class Source>
std::unique_ptr<read_stage> new_shard_read_stage(const Source& source, const shard_order& order,
                                                 const shard_read_stage_options& o,
                                                 sample_sink<typename Source::item>& next) {
  return std::make_unique<shard_read_stage<Source>>(source, order, o, next);
}

}}}  // namespace millrace::detail
