// Hands claims of tickets to workers, which run a segment on them. There is no queue of items, and nothing here waits.
//
//   auto d = std::make_shared<mr::detail::dispatcher>(
//       segment, mr::detail::dispatcher::options{.max_workers = 8, .together = 2, .group = 256});
//   d->attach(&executor);
//   d->set_available(n);      // tickets below n have their input           (called by the source or segment before)
//   d->set_limit(m);          // tickets below m have space for the result  (called for slots, or by the segment after)
//
// A ticket is a position: ticket t is row t % B of batch t / B, whichever worker runs it. So the order never depends
// on the number of workers. Tickets below min(available, limit) are claimable. A worker leaves when nothing is
// claimable. The thread that raises one of the two counters starts workers again. A claim takes the preferred number
// of tickets (`together`). It takes fewer only at the end of a group, and more if tickets are cheap. It never crosses
// a multiple of `group` (a batch). The number of active workers may change at any time. A worker that becomes inactive
// finishes its current claim and leaves.
//
// Threads: any thread may call any member.
// Lifetime: tasks share ownership of the dispatcher. They touch the segment only while their worker is at work. After
// stop() and join() no worker is at work.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/measure/read_meter.hpp>
#include <millrace/measure/worker_times.hpp>
#include <millrace/sync/doorbell.hpp>
#include <millrace/work/executor.hpp>
#include <millrace/work/segment.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The work that a dispatcher runs on its tickets.
class dispatcher_work {
 public:
  virtual ~dispatcher_work() = default;
  /// Runs tickets first .. first + count - 1 as the worker with this index. No other thread is that worker meanwhile.
  virtual void run(std::size_t worker, std::uint64_t first, std::size_t count) noexcept = 0;
};

/// Hands claims to workers.
class dispatcher final : public worker_task,
                               public ticket_gate,
                               public std::enable_shared_from_this<dispatcher> {
 public:
  struct options {
    std::size_t max_workers = 1;   ///< number of workers
    std::size_t together = 1;   ///< preferred claim, in tickets
    std::size_t group = 1;      ///< rows of a batch; a claim never crosses a multiple of it
  };

  /// `work` must outlive the last task, see join().
  dispatcher(dispatcher_work& work, options o)
      : work_(&work), options_(o), open_(o.max_workers), workers_(o.max_workers) {
    max_at_once_ = std::clamp<std::size_t>(o.group / (2 * o.max_workers), o.together, 32);
    max_at_once_ -= max_at_once_ % o.together;
    const std::uint64_t now = steady_now_ns();
    for (auto& s : workers_) {
      s.at_once = o.together;
      s.times = std::make_unique<worker_times>(now);
    }
  }

  /// Sets the executor that runs the workers. Without an executor only advance() runs claims.
  void attach(executor* e) noexcept { executor_ = e; }

  /// Makes the tickets below `tickets` available: they have their input.
  void set_available(std::uint64_t tickets) override {
    if (available_.exchange(tickets) == 0) first_available_.ring();
    kick();
  }
  /// Raises the limit: tickets below `tickets` have space for their result. A lower value has no effect.
  void set_limit(std::uint64_t tickets) {
    // Several threads may free space at once, and the later call may bring the smaller number.
    std::uint64_t now = limit_.load();
    while (now < tickets && !limit_.compare_exchange_weak(now, tickets)) {
    }
    kick();
  }
  /// Returns the number of tickets that have their input.
  std::uint64_t available() const noexcept override { return available_.load(); }
  /// Blocks until there is a first ticket, whether or not it may be claimed.
  void wait_for_available() {
    first_available_.wait([&] { return available_.load() > 0; });
  }

  /// Records for waits() which ticket of its claim a worker is at.
  void at(std::size_t worker, std::uint64_t ticket) noexcept { workers_[worker].times->at(ticket); }

  /// Runs one claim on the calling thread. Returns false if nothing is claimable.
  bool advance() {
    std::uint64_t first;
    const std::size_t count = claim(options_.together, first);
    if (count == 0) return false;
    worker_times& times = *workers_[0].times;
    times.begin(steady_now_ns());
    times.at(first);
    work_->run(0, first, count);
    const std::uint64_t now = steady_now_ns();
    times.worked(now, count, batch_of(first));
    times.leave(now, what_is_missing());
    return true;
  }

  /// Makes the first `count` workers active, and the others inactive; at least 1, at most all. Has no effect if the
  /// stage runs on threads of its own.
  void set_active(std::size_t count) {
    if (!on_workers()) return;
    const std::size_t open = std::clamp<std::size_t>(count, 1, workers_.size());
    {
      const std::lock_guard lock(mutex_);
      const std::uint64_t now = steady_now_ns();
      for (std::size_t i = std::min(open, open_.load()); i < std::max(open, open_.load()); ++i)
        if (!workers_[i].taken)
          workers_[i].times->wait_for(now, i < open ? what_is_missing() : worker_times::waits_for::nothing);
      open_.store(open);
      all_taken_.store(false);
    }
    kick();
  }

  /// Makes all workers leave after their current claim. Does not wait.
  void stop() noexcept { stopped_.store(true); }
  /// Blocks until no worker is at work. Call it after stop().
  void join() noexcept {
    std::unique_lock lock(mutex_);
    worker_left_.wait(lock, [&] { return taken_ == 0; });
  }

  /// Returns the nanoseconds that all workers spent at work, in sum.
  std::uint64_t busy_ns() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& s : workers_) sum += s.times->busy_ns();
    return sum;
  }
  /// Returns the times and event counts of all workers.
  stage_figures figures(std::string name, std::uint64_t now_ns) const {
    stage_figures f{.name = std::move(name), .kind = stage_kind::work, .concurrency = open_.load()};
    f.on_workers = on_workers();
    for (const auto& s : workers_) s.times->add_to(f, now_ns);
    return f;
  }

  /// Returns the state of the workers as text:
  ///   "1 of 4 at work, the longest for 31.2 s at sample 1580 (batch 6), thread 0x7f21c8d3a6c0; 3 wait for input"
  std::string waits(std::uint64_t now_ns) const {
    std::size_t working = 0, for_input = 0, for_space = 0;
    worker_times::state oldest{};
    for (const auto& s : workers_) {
      const worker_times::state one = s.times->now();
      if (one.works && (working++ == 0 || one.since_ns < oldest.since_ns)) oldest = one;
      for_input += !one.works && one.what == worker_times::waits_for::input;
      for_space += !one.works && one.what == worker_times::waits_for::space;
    }
    std::string text = std::to_string(working) + " of " + std::to_string(open_.load()) + " at work";
    if (working > 0) {
      char thread[24];
      std::snprintf(thread, sizeof thread, "0x%llx", static_cast<unsigned long long>(oldest.thread));
      text += ", the longest for " + detail::seconds_text(now_ns - std::min(now_ns, oldest.since_ns)) + " at sample " +
              std::to_string(oldest.ticket);
      if (options_.group > 1) text += " (batch " + std::to_string(oldest.ticket / options_.group) + ")";
      text += std::string(", thread ") + thread;
    }
    if (for_input > 0) text += "; " + std::to_string(for_input) + " wait for input";
    if (for_space > 0) text += "; " + std::to_string(for_space) + " wait for room";
    return text;
  }
  /// Adds the latest spans of each worker to a timeline.
  void add_spans(timeline& t, const std::string& name, std::uint64_t start_ns) const {
    for (std::size_t i = 0; i < workers_.size(); ++i)
      t.add_spans(name + " " + std::to_string(i), name.c_str(), workers_[i].times->spans(), start_ns);
  }

  /// Runs claims as worker `index` until nothing is claimable, the worker is inactive, or its turn is over.
  void run_as_worker(std::size_t index) noexcept override {
    worker& s = workers_[index];
    const std::uint64_t start = steady_now_ns();
    std::uint64_t now = start;
    std::uint64_t first;
    s.times->begin(start);
    while (!stopped_.load() && index < open_.load()) {
      const std::size_t count = claim(s.at_once, first);
      if (count == 0) break;
      s.times->at(first);
      work_->run(index, first, count);
      now = steady_now_ns();
      adapt(s, s.times->worked(now, count, batch_of(first)), count);
      // After its turn the worker queues again, so that other sessions and the user's own TBB work run, too.
      if (now - start > turn_ns) {
        s.times->end_of_stay();
        if (submit(index)) return;
        s.times->begin(now);
      }
    }
    leave(index, now);
    kick();
  }

 private:
  static constexpr std::uint64_t turn_ns = 5'000'000;
  static constexpr std::uint64_t cheap_ns = 20'000;

  struct alignas(64) worker {
    std::size_t at_once = 1;
    bool taken = false;   // guarded by mutex_
    std::unique_ptr<worker_times> times{};
  };

  bool on_workers() const noexcept { return executor_ && executor_->shared(); }

  std::size_t claim(std::size_t most, std::uint64_t& first) noexcept {
    std::uint64_t head = head_.load();
    for (;;) {
      const std::uint64_t to_border = options_.group - head % options_.group;
      const std::uint64_t count = std::min({static_cast<std::uint64_t>(most), claimable(head), to_border});
      if (count == 0) return 0;
      if (head_.compare_exchange_weak(head, head + count)) {
        first = head;
        return static_cast<std::size_t>(count);
      }
    }
  }

  std::uint64_t batch_of(std::uint64_t ticket) const noexcept {
    return options_.group > 1 ? ticket / options_.group : timeline_span::no_batch;
  }
  /// Returns the missing half of a ticket: space or input.
  worker_times::waits_for what_is_missing() const noexcept {
    return limit_.load() < available_.load() ? worker_times::waits_for::space : worker_times::waits_for::input;
  }

  /// Returns the claimable tickets from `head` on. Tickets wait until the preferred claim is complete, except at the
  /// end of a group: groups are always filled up.
  std::uint64_t claimable(std::uint64_t head) const noexcept {
    const std::uint64_t end = std::min(available_.load(), limit_.load());
    if (head >= end) return 0;
    const std::uint64_t left_in_group = options_.group - head % options_.group;
    if (end - head >= left_in_group) return end - head;
    return (end - head) / options_.together * options_.together;
  }

  /// Doubles the claim for cheap tickets, so that claiming costs nothing. Halves it for expensive tickets, so that the
  /// workers finish evenly.
  void adapt(worker& s, std::uint64_t spent_ns, std::size_t count) const noexcept {
    if (count < s.at_once) return;
    if (spent_ns < cheap_ns && s.at_once * 2 <= max_at_once_) s.at_once *= 2;
    else if (spent_ns > 2 * cheap_ns && s.at_once > options_.together) s.at_once /= 2;
  }

  /// Starts workers while there is something to claim.
  void kick() {
    if (!executor_) return;
    while (!stopped_.load()) {
      const std::uint64_t tickets = claimable(head_.load());
      if (tickets == 0 || all_taken_.load()) return;
      std::size_t index;
      {
        const std::lock_guard lock(mutex_);
        // Start no more workers than there are claims.
        if (taken_ >= (tickets + options_.together - 1) / options_.together && taken_ > 0) return;
        index = 0;
        while (index < open_.load() && workers_[index].taken) ++index;
        if (index == open_.load() || stopped_.load()) return;
        workers_[index].taken = true;
        ++taken_;
        all_taken_.store(taken_ >= open_.load());   // an inactive worker that leaves checks again
      }
      if (!submit(index)) {
        leave(index, steady_now_ns());
        return;
      }
    }
  }

  bool submit(std::size_t index) noexcept {
    try {
      executor_->submit(this->shared_from_this(), index);
      return true;
    } catch (...) {
      return false;   // out of memory: the next change of a counter tries again
    }
  }

  void leave(std::size_t index, std::uint64_t now) noexcept {
    worker& s = workers_[index];
    s.times->end_of_stay();
    {
      const std::lock_guard lock(mutex_);
      s.times->leave(now, index < open_.load() ? what_is_missing() : worker_times::waits_for::nothing);
      s.taken = false;
      --taken_;
      all_taken_.store(false);
    }
    worker_left_.notify_all();
  }

  dispatcher_work* const work_;
  const options options_;
  std::size_t max_at_once_ = 1;
  executor* executor_ = nullptr;

  alignas(64) std::atomic<std::uint64_t> head_{0};
  alignas(64) std::atomic<std::uint64_t> available_{0};
  std::atomic<std::uint64_t> limit_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<std::size_t> open_;   // written under mutex_
  std::atomic<bool> all_taken_{false};
  std::mutex mutex_;
  std::condition_variable worker_left_;
  doorbell first_available_;
  std::size_t taken_ = 0;
  std::vector<worker> workers_;
};

}}}  // namespace millrace::detail
