// The training log: takes rows from the step and gives them to its sinks from a thread of its own.
//
//   mr::log out(mr::status_line{}, mr::json_lines("run.jsonl"), mr::tensorboard("runs/first"));
//   out.push({.step = step, .values = {{"learning_rate", rate}}});     // full queue: the rows of the lowest steps go
//   if (!out.offer(r)) keep(r);                                        // full queue: refused, the caller keeps the row
//   out.message("lowered the learning rate");
//   out.close();                                                       // or the destructor
//
// A call never waits for a sink: push, offer and message cost a lock and a move. Rows that the sinks are too slow for
// are dropped and counted.
// Order: rows that arrive within `hold_ns` of each other are written by step, whichever thread sent them first. A row
// that comes later still is written at once and counted as late, because losing a late validation result is worse.
// Text that is not UTF-8 is cleaned before all sinks: each invalid byte becomes U+FFFD.
// Errors: an error of a sink is reported on stderr once per sink and counted; training goes on. The constructor throws
// setup_error for a queue of 0 rows.
// Threads: any thread may call.
// Lifetime: close() and the destructor write what is left, for at most `drain_ns`. A sink that hangs longer keeps its
// thread, and the rows that it never took count as dropped.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/train/sink.hpp>

#include <algorithm>
#include <concepts>
#include <condition_variable>   // and the durations that wait_for takes; <chrono> adds a calendar
#include <csignal>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Limits and times of a log.
struct log_options {
  std::size_t queue_rows = 1024;                     ///< limit of the rows that wait
  std::size_t queue_bytes = std::size_t{64} << 20;   ///< limit of the memory of these rows
  std::int64_t hold_ns = 200'000'000;                ///< how long a row waits for rows of earlier steps
  std::int64_t drain_ns = 5'000'000'000;             ///< limit of the time of close() and of flush()
  time_source now = detail::system_instant;
};

namespace detail {

/// Counts of rows since the log was made. accepted = written + failed + dropped + still waiting.
struct log_counts {
  std::uint64_t accepted = 0;
  std::uint64_t written = 0;       ///< every sink took the row
  std::uint64_t failed = 0;        ///< a sink threw; the others have the row
  std::uint64_t dropped = 0;       ///< gave way to newer rows, or left over when close() ran out of time
  std::uint64_t refused = 0;       ///< by offer(), or after close()
  std::uint64_t late = 0;          ///< written after a row of a later step
  std::uint64_t sink_errors = 0;   ///< errors of all sinks, including those in tick() and close()
};

/// Shared by the log and its thread, so that a hanging sink cannot outlive what it uses.
class log_state {
 public:
  log_state(log_options options, std::vector<std::unique_ptr<sink>> sinks)
      : options_(std::move(options)), sinks_(std::move(sinks)), reported_(sinks_.size()) {}

  bool put(row& r, bool may_drop) {
    const std::int64_t now_ns = stamp(r);
    r.clean_text();
    const std::size_t size = r.held_bytes();
    {
      const std::lock_guard lock(mutex_);
      if (closing_ || size > options_.queue_bytes || (!may_drop && !can_accept(size))) {
        ++counts_.refused;
        return false;
      }
      while (!can_accept(size)) drop_first();
      if (!r.message.empty() && r.values.empty()) r.step = std::max(r.step, last_step_);
      last_step_ = std::max(last_step_, r.step);
      const std::uint64_t step = r.step;
      waiting_.push_back(entry{std::move(r), now_ns, size});
      for (std::size_t i = waiting_.size() - 1; i > 0 && step < waiting_[i - 1].r.step; --i)
        std::swap(waiting_[i - 1], waiting_[i]);
      waiting_bytes_ += size;
      ++counts_.accepted;
    }
    wake_writer_.notify_one();
    return true;
  }

  /// Waits until all accepted rows are written, for at most drain_ns. `then_close`: also until the sinks are closed.
  /// Returns false if the time ran out.
  bool drain(bool then_close) {
    std::unique_lock lock(mutex_);
    if (then_close) closing_ = true;
    ++draining_;
    wake_writer_.notify_one();
    const bool done = progress_.wait_for(lock, std::chrono::nanoseconds(options_.drain_ns), [&] {
      return finished_ || (!then_close && waiting_.empty() && !writing_);
    });
    --draining_;
    if (!done && then_close)
      while (!waiting_.empty()) drop_first();
    return done;
  }

  log_counts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

  void run() noexcept {
    std::unique_lock lock(mutex_);
    while (!(closing_ && waiting_.empty())) {
      if (ready(lock)) {
        write_first(lock);
      } else {
        wake_writer_.wait_for(lock, tick_every);
      }
      tick(lock);
    }
    lock.unlock();
    for (std::size_t i = 0; i < sinks_.size(); ++i)
      guarded(i, [&] { sinks_[i]->close(); });
    lock.lock();
    finished_ = true;
    progress_.notify_all();
  }

 private:
  struct entry {
    row r;
    std::int64_t arrived_ns;
    std::size_t size_bytes;
  };
  static constexpr auto tick_every = std::chrono::milliseconds(50);

  std::int64_t stamp(row& r) const {
    const instant now = options_.now();
    if (r.unix_ns == 0) r.unix_ns = now.unix_ns;
    return now.steady_ns;
  }
  bool can_accept(std::size_t size) const noexcept {
    return waiting_.empty() ||
           (waiting_.size() < options_.queue_rows && waiting_bytes_ + size <= options_.queue_bytes);
  }
  void drop_first() {
    waiting_bytes_ -= waiting_.front().size_bytes;
    waiting_.pop_front();
    ++counts_.dropped;
  }

  /// True if a row may be written: it, or a row behind it, has waited long enough. The lowest step goes first.
  bool ready(std::unique_lock<std::mutex>&) const {
    if (waiting_.empty()) return false;
    if (closing_ || draining_ > 0 || options_.hold_ns <= 0) return true;
    const std::int64_t aged_ns = options_.now().steady_ns - options_.hold_ns;
    return std::any_of(waiting_.begin(), waiting_.end(), [&](const entry& e) { return e.arrived_ns <= aged_ns; });
  }

  void write_first(std::unique_lock<std::mutex>& lock) {
    const row r = std::move(waiting_.front().r);
    waiting_bytes_ -= waiting_.front().size_bytes;
    waiting_.pop_front();
    if (r.step < written_step_) ++counts_.late;
    written_step_ = std::max(written_step_, r.step);
    writing_ = true;
    lock.unlock();
    bool taken = true;
    for (std::size_t i = 0; i < sinks_.size(); ++i)
      taken = guarded(i, [&] { sinks_[i]->write(r); }) && taken;
    lock.lock();
    writing_ = false;
    ++(taken ? counts_.written : counts_.failed);
    if (draining_ > 0 && waiting_.empty()) progress_.notify_all();
  }

  void tick(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    const instant now = options_.now();
    for (std::size_t i = 0; i < sinks_.size(); ++i)
      guarded(i, [&] { sinks_[i]->tick(now); });
    lock.lock();
  }

  /// Runs `call` without the lock. Returns false if it threw.
  template <class F>
  bool guarded(std::size_t index, F&& call) noexcept {
    try {
      call();
      return true;
    } catch (const std::exception& e) {
      report(index, e.what());
    } catch (...) {
      report(index, "an exception of unknown type");
    }
    const std::lock_guard lock(mutex_);
    ++counts_.sink_errors;
    return false;
  }
  void report(std::size_t index, const char* what) noexcept {
    if (reported_[index]) return;
    reported_[index] = true;
    std::fprintf(stderr, "millrace: the log's %s sink failed and will be tried again, silently: %s\n",
                 sinks_[index]->name(), what);
  }

  const log_options options_;
  const std::vector<std::unique_ptr<sink>> sinks_;
  std::vector<bool> reported_;   // used by the writer thread only

  mutable std::mutex mutex_;
  std::condition_variable wake_writer_, progress_;
  std::deque<entry> waiting_;    // by step, then by arrival
  std::size_t waiting_bytes_ = 0;
  std::uint64_t last_step_ = 0, written_step_ = 0;
  log_counts counts_;
  int draining_ = 0;
  bool closing_ = false, writing_ = false, finished_ = false;
};

}  // namespace detail

/// mr::log: queues rows and writes them to its sinks.
class log {
 public:
  /// Starts the writer thread. Throws setup_error if options.queue_rows is 0.
  template <std::derived_from<sink>... S>
  explicit log(log_options options, S... sinks) {
    if (options.queue_rows == 0)
      throw setup_error("log_options::queue_rows is 0", "Let at least one row wait; the default is 1024");
    std::vector<std::unique_ptr<sink>> all;
    (all.push_back(std::make_unique<S>(std::move(sinks))), ...);
    state_ = std::make_shared<detail::log_state>(std::move(options), std::move(all));
    start();
  }
  template <std::derived_from<sink>... S>
  explicit log(S... sinks) : log(log_options{}, std::move(sinks)...) {}
  log(const log&) = delete;
  log& operator=(const log&) = delete;
  ~log() { close(); }

  /// Queues the row; a full queue drops the rows of the lowest steps for it.
  /// Returns false after close() and for a row larger than `queue_bytes`.
  bool push(row r) { return state_->put(r, true); }
  /// Queues the row. Returns false if the queue is full and leaves the row to the caller.
  bool offer(row& r) { return state_->put(r, false); }
  bool offer(row&& r) { return state_->put(r, false); }
  /// Queues a line of text; it is written after the rows that were sent before it. Returns what push() returns.
  bool message(std::string text) {
    row r;
    r.message = std::move(text);
    return push(std::move(r));
  }

  /// Blocks until the sinks have all rows so far. Returns false if that takes longer than `drain_ns`.
  bool flush() { return state_->drain(false); }
  /// Writes what is left and closes the sinks. Returns false if that takes longer than `drain_ns`. Never throws.
  bool close() noexcept {
    if (!writer_.joinable()) return true;
    const bool done = state_->drain(true);
    if (done) writer_.join();
    else writer_.detach();
    return done;
  }

  /// Returns the counts of rows so far.
  detail::log_counts counts() const { return state_->counts(); }

 private:
  void start() {
    // Signals belong to the user's threads. A closed pipe must be an error of the sink, not the end of the program.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      writer_ = std::thread([state = state_] { state->run(); });
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  std::shared_ptr<detail::log_state> state_;
  std::thread writer_;
};

}}  // namespace millrace
