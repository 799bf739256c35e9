// The intake: I/O threads read parts (shards) of the source, several at once, and pass their samples on in plan order.
//
//   intake<shard_source> in(source, plan, options, first_segment.entrance());
//   in.start();  ...  in.stop();  in.join();
//
// Part k of the run (parts follow each other over the borders of epochs) is read by whichever thread is free; its
// samples wait in the part's own queue until the parts before it are through. Then they go into the jitter order, and
// from there, as soon as their place is certain, to the first segment. Credit comes before reading: what is read ahead
// is bounded in bytes. Only the part whose turn it is may overdraw, by one sample at a time and only while the workers
// starve, so there is always progress.
// An error ends the run: everything in front of it is passed on, then the error in the place of the next sample.
// Threads: as many as asked for, or none, then advance() reads. Reads block only these threads.
#pragma once

#include <millrace/run/pump.hpp>
#include <millrace/run/plan.hpp>
#include <millrace/run/segment.hpp>
#include <millrace/sync/doorbell.hpp>
#include <millrace/sync/fifo.hpp>

#include <deque>
#include <thread>

namespace millrace::inline MILLRACE_ABI {

struct intake_options {
  unsigned threads = 4;   ///< 0: no threads, advance() reads
  std::uint64_t epochs = 1;
  std::size_t read_ahead_bytes = std::size_t{256} << 20;   ///< of samples that no worker has taken yet
  std::size_t window_bytes = ~std::size_t{0};              ///< most that the shuffle window may hold
};

template <class Source>
class intake final : public component, public room_listener {
 public:
  using item = typename Source::item;
  using options = intake_options;

  intake(const Source& source, const plan& order, options o, sample_sink<item>& next)
      : source_(&source), plan_(&order), options_(o), next_(&next), order_(order) {
    next.set_listener(this);
  }

  void count_into(tally& counts) noexcept override { counts_ = &counts; }
  void start() override {
    for (unsigned i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { work(); });
  }

  /// Reads one sample on the caller, or passes on what waits.
  bool advance() override {
    std::unique_lock lock(mutex_);
    if (pass_on()) return true;
    if (finished_) return false;
    if (parts_.empty()) open_next_part();
    if (parts_.empty()) return false;
    part_queue& part = *parts_.front();
    lock.unlock();
    const bool more = read_some(part, read_by_advance_, 1);
    lock.lock();
    append(part, read_by_advance_, more);
    pass_on();
    return true;
  }

  void room_freed() noexcept override {
    if (next_->backlog() >= wake_below_.load() || wake_below_.exchange(0) == 0) return;
    room_news_.store(true);
    news_.ring_one();
  }

  void stop() noexcept override {
    stopped_.store(true);
    tell_news();
  }
  void join() noexcept override {
    for (auto& t : threads_)
      if (t.joinable()) t.join();
  }

  /// For statistics, any thread.
  std::uint64_t bytes_read() const noexcept { return bytes_read_.load(std::memory_order_relaxed); }
  std::uint64_t samples_read() const noexcept { return samples_read_.load(std::memory_order_relaxed); }
  std::uint64_t busy_ns() const noexcept { return busy_ns_.load(std::memory_order_relaxed); }
  std::size_t threads() const noexcept { return threads_.size(); }

 private:
  using reader = decltype(std::declval<const Source&>().open(std::size_t{}, std::uint64_t{}));

  /// A part that is being read, and its samples whose turn has not come.
  struct part_queue {
    std::uint64_t epoch = 0;
    std::size_t ordinal = 0;   // in the list as the user gave it
    bool last_of_epoch = false;
    std::optional<reader> open{};   // of the reading thread only
    std::uint64_t next_index = 0;   // of the reading thread only
    fifo<sample<item>> samples{};
    std::exception_ptr error{};
    bool done = false;
    bool reader_waits = false;      // until more may be read ahead
  };
  struct batch_of_samples {
    std::vector<sample<item>> samples{};
    std::size_t bytes = 0;
    std::exception_ptr error{};
  };

  static constexpr std::size_t chunk_samples = 64;
  static constexpr std::size_t chunk_bytes = std::size_t{256} << 10;

  // ---- under mutex_ ----

  /// Takes the next part of the run, if there is one. Returns null at the end.
  part_queue* open_next_part() {
    if (finished_ || epoch_ >= options_.epochs) return nullptr;
    if constexpr (requires { requires Source::one_reader_at_a_time; })
      if (!parts_.empty() && !parts_.back()->done) return nullptr;
    if (at_ == 0) epoch_parts_ = plan_->parts_of(epoch_);
    auto part = spare_parts_.empty() ? std::make_unique<part_queue>() : std::move(spare_parts_.back());
    if (!spare_parts_.empty()) spare_parts_.pop_back();
    part->next_index = 0;
    part->error = nullptr;
    part->done = false;
    part->reader_waits = false;
    part->epoch = epoch_;
    part->ordinal = epoch_parts_[at_];
    part->last_of_epoch = ++at_ == epoch_parts_.size();
    if (part->last_of_epoch) {
      at_ = 0;
      ++epoch_;
    }
    parts_.push_back(std::move(part));
    return parts_.back().get();
  }

  void append(part_queue& part, batch_of_samples& read, bool more) {
    // Without a shuffle, what is its turn already need not queue.
    const bool at_once = !finished_ && !plan_->jitters() && &part == parts_.front().get();
    for (auto& s : read.samples) {
      if (at_once && part.samples.empty() && next_->has_room()) {
        ++epoch_samples_;
        next_->put(std::move(s));
      } else {
        queued_bytes_ += held_bytes_of(*s.item);
        part.samples.push(std::move(s));
      }
    }
    if (!more) {
      part.done = true;
      part.error = read.error;
      if constexpr (requires { part.open->report(*counts_); })
        if (part.open && counts_) part.open->report(*counts_);
      part.open.reset();
    }
    read.samples.clear();
    read.bytes = 0;
  }

  /// Moves samples from the queues through the jitter order into the next segment. True if anything moved.
  bool pass_on() {
    bool moved = false;
    while ((room_ = next_->has_room()) && !finished_) {
      if (order_.ready()) {
        next_->put(order_.pop());
      } else if (!pass_part_on()) {
        break;
      }
      moved = true;
    }
    next_->publish();
    return moved;
  }

  /// One step with the part whose turn it is; false if it has nothing to give yet.
  bool pass_part_on() {
    if (parts_.empty()) {
      if (epoch_ < options_.epochs) return false;
      finish(nullptr);
      return true;
    }
    part_queue& part = *parts_.front();
    if (!part.samples.empty()) {
      sample<item> s = part.samples.pop();
      queued_bytes_ -= held_bytes_of(*s.item);
      ++epoch_samples_;
      if (!plan_->jitters()) {
        next_->put(std::move(s));
        return true;
      }
      order_.push(std::move(s));
      if (order_.held_bytes() > options_.window_bytes) finish(window_error());
      return true;
    }
    if (!part.done) return false;
    if (part.error) {
      finish(part.error);
      return true;
    }
    if (!part.last_of_epoch) {
      close_part();
      return true;
    }
    if (!epoch_ended_) {
      if (epoch_samples_ == 0) {
        finish(empty_error(part.epoch));
        return true;
      }
      order_.end_epoch();
      epoch_ended_ = true;
      return true;
    }
    next_->end_epoch();
    order_.begin_epoch();
    epoch_ended_ = false;
    epoch_samples_ = 0;
    close_part();
    return true;
  }

  /// The next part's turn has come, and one more may be opened.
  void close_part() {
    spare_parts_.push_back(std::move(parts_.front()));
    parts_.pop_front();
    tell_news();
  }

  void finish(std::exception_ptr error) {
    finished_ = true;
    order_.clear();
    next_->finish(std::move(error));
    tell_news();
  }

  std::exception_ptr empty_error(std::uint64_t epoch) const {
    return std::make_exception_ptr(
        data_error("the source has no sample: its " + std::to_string(plan_->settings().parts) +
                       " parts were read to the end in epoch " + std::to_string(epoch),
                   "Look at what the shards hold (examples/inspect), and at the names of their members"));
  }
  std::exception_ptr window_error() const {
    return std::make_exception_ptr(
        setup_error("the shuffle window holds " + std::to_string(order_.held_bytes()) + " bytes in " +
                        std::to_string(order_.size()) + " samples, more than the " +
                        std::to_string(options_.window_bytes) + " bytes that the budget leaves for it",
                    "Choose a smaller shuffle window, or a larger session_options::memory_bytes"));
  }

  bool may_read(const part_queue& part) const {
    if (read_ahead() < options_.read_ahead_bytes && part.samples.size() < most_queued) return true;
    return &part == parts_.front().get() && part.samples.empty() && next_->backlog() == 0;
  }
  std::size_t read_ahead() const noexcept { return queued_bytes_ + next_->held_bytes(); }
  static constexpr std::size_t most_queued = 16'384;

  // ---- without it ----

  /// Reads up to a chunk; false at the end of the part.
  bool read_some(part_queue& part, batch_of_samples& read, std::size_t most) {
    const std::uint64_t start = steady_now_ns();
    bool more = true;
    try {
      if (!part.open) part.open.emplace(source_->open(part.ordinal, part.epoch));
      while (read.samples.size() < most && read.bytes < chunk_bytes) {
        std::optional<item> next = part.open->next();
        if (!next) {
          more = false;
          break;
        }
        sample<item> s;
        s.epoch = part.epoch;
        s.id = sample_id(part.ordinal, part.next_index++);
        s.origin = origin_of(*next);
        read.bytes += held_bytes_of(*next);
        s.item = std::move(next);
        read.samples.push_back(std::move(s));
        // Hungry workers get each sample at once, busy ones get them by the chunk.
        if (next_->backlog() == 0 || stopped_.load(std::memory_order_relaxed)) break;
      }
    } catch (...) {
      place at;
      at.stage = "source";
      if constexpr (requires { source_->part_name(part.ordinal); }) at.shard = source_->part_name(part.ordinal);
      read.error = located_exception(at);
      more = false;
    }
    bytes_read_.fetch_add(read.bytes, std::memory_order_relaxed);
    samples_read_.fetch_add(read.samples.size(), std::memory_order_relaxed);
    busy_ns_.fetch_add(steady_now_ns() - start, std::memory_order_relaxed);
    return more;
  }

  void work() {
    detail::name_this_thread("millrace-read");
    batch_of_samples read;
    std::unique_lock lock(mutex_);
    while (!stopped_.load()) {
      const std::uint64_t seen = news_count_.load();
      const bool still = stand_still();
      part_queue* part = parts_.size() < 2 * std::size_t{options_.threads} ? open_next_part() : nullptr;
      if (part) read_part(lock, *part, read);
      else sleep(lock, seen, still);
    }
  }

  void read_part(std::unique_lock<std::mutex>& lock, part_queue& part, batch_of_samples& read) {
    bool more = true;
    while (more && !stopped_.load() && !finished_) {
      const std::uint64_t seen = news_count_.load();
      const bool still = stand_still();
      if (may_read(part)) {
        // Should this read take long, somebody else passes on what waits.
        if (!expect_room() && !still) continue;
        lock.unlock();
        more = read_some(part, read, chunk_samples);
        lock.lock();
        append(part, read, more);
      } else {
        part.reader_waits = true;
        bytes_wanted_ = bytes_wanted_ || read_ahead() >= options_.read_ahead_bytes;
        sleep(lock, seen, still);
        part.reader_waits = false;
      }
    }
  }

  /// For every thread.
  void tell_news() noexcept {
    news_count_.fetch_add(1);
    news_.ring();
  }

  /// Passes on what there is. True if there was nothing, and the workers have nothing to take either: then no worker
  /// will ever free room that somebody here waits for.
  bool stand_still() {
    const bool drained = next_->backlog() == 0;
    return !pass_on_and_tell() && drained;
  }

  /// Under mutex_. Readers that wait are told when there is well less than what stopped them, not at every sample.
  bool pass_on_and_tell() {
    const bool moved = pass_on();
    bool tell = bytes_wanted_ && read_ahead() < options_.read_ahead_bytes / 4 * 3;
    if (tell) bytes_wanted_ = false;
    if (!parts_.empty() && parts_.front()->reader_waits) {
      const auto& queued = parts_.front()->samples;
      tell = tell || (!bytes_wanted_ && queued.size() < most_queued / 2) || (queued.empty() && next_->backlog() == 0);
      if (tell) parts_.front()->reader_waits = false;
    }
    if (tell) tell_news();
    return moved;
  }

  /// Asks the workers to wake one thread, whichever, once, when half of what they have now is gone: waking costs more
  /// than they should pay for every sample. That thread passes on what waits, and tells those who wait for that. False
  /// if there is room already.
  bool expect_room() {
    if (room_ && !bytes_wanted_) return true;
    const std::uint64_t backlog = next_->backlog();
    if (backlog == 0) return false;
    wake_below_.store(backlog / 2 + 1);
    return next_->backlog() >= backlog / 2 + 1;
  }

  /// Until there is news since `seen`, or room for what waits.
  void sleep(std::unique_lock<std::mutex>& lock, std::uint64_t seen, bool still) {
    if (!expect_room() && !still) return;
    lock.unlock();
    // Whoever takes the news of room acts on it, so one is enough.
    news_.wait([&] { return room_news_.exchange(false) || stopped_.load() || news_count_.load() != seen; });
    lock.lock();
  }

  const Source* const source_;
  const plan* const plan_;
  const options options_;
  sample_sink<item>* const next_;
  tally* counts_ = nullptr;

  std::mutex mutex_;
  jitter_order<item> order_;
  std::deque<std::unique_ptr<part_queue>> parts_;   // in the order of the run
  std::vector<std::unique_ptr<part_queue>> spare_parts_;
  std::size_t queued_bytes_ = 0;   // in the queues of all parts
  std::vector<std::size_t> epoch_parts_;
  std::uint64_t epoch_ = 0;   // of the part to be opened next
  std::size_t at_ = 0;        // its place in that epoch
  std::uint64_t epoch_samples_ = 0;
  bool epoch_ended_ = false, finished_ = false;
  bool room_ = true;            // of the next segment, when last looked
  bool bytes_wanted_ = false;   // a reader waits for fewer bytes to be read ahead
  batch_of_samples read_by_advance_;

  std::atomic<bool> stopped_{false};
  std::atomic<std::uint64_t> news_count_{0}, wake_below_{0};
  std::atomic<bool> room_news_{false};
  std::atomic<std::uint64_t> bytes_read_{0}, samples_read_{0}, busy_ns_{0};
  doorbell news_;
  std::vector<std::thread> threads_;
};

}  // namespace millrace::inline MILLRACE_ABI
