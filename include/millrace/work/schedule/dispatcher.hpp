// Assigns claims of tickets to workers, which run a segment on them. It has no queue of items, and never waits.
//
//   auto d = mr::detail::make_aligned_shared<mr::detail::dispatcher>(
//       segment, mr::detail::dispatcher::options{.max_workers = 8, .together = 2, .group = 256});
//   d->attach(&executor);
//   d->set_available(n);      // tickets below n have their input           (called by the source or segment before)
//   d->set_limit(m);          // tickets below m have space for the result  (called for slots, or by the segment after)
//
// A ticket is a position: ticket t is row t % B of batch t / B, on any worker. Therefore the order never depends on the
// number of workers. Tickets below min(available, limit) are claimable. A claim has the preferred number of tickets
// (`together`), fewer only at the end of a group, and more if tickets are cheap. It never crosses a multiple of `group`
// (a batch).
// A worker without a claimable ticket sleeps for up to a millisecond, and then leaves. The thread that raises one of
// the two counters wakes workers, or starts them again. Sleeping costs less: oneTBB lets a thread that leaves search
// for other tasks for a while. A worker sleeps only if its executor serves no other stage, whose tasks would wait for
// its thread. The number of active workers may change at any time. A worker that becomes inactive finishes its current
// claim and leaves.
// If there are more workers than cores, the number of active workers is limited by available CPU time, because workers
// that share a core evict each other's cache. A worker that waits in its callable needs no core, and another one is
// active instead.
//
// Threads: any thread may call any member.
// Lifetime: tasks share ownership of the dispatcher. They access the segment only while their worker is running. After
// stop() and join() no worker is running.
#pragma once

#include <millrace/base/aligned_allocator.hpp>
#include <millrace/measure/meters/worker_times.hpp>
#include <millrace/sync/doorbell.hpp>
#include <millrace/work/schedule/worker_executor.hpp>
#include <millrace/work/schedule/segment.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The work that a dispatcher runs on its tickets.
class dispatcher_work {
 public:
  virtual ~dispatcher_work() = default;
  /// Runs tickets first .. first + count - 1 as the worker with this index. No other thread uses this index at that
  /// time.
  virtual void run(std::size_t worker, std::uint64_t first, std::size_t count) noexcept = 0;
  /// Passes on the tickets that this worker ran, which have been counted.
  virtual void publish(std::uint64_t first, std::size_t count) noexcept = 0;
};

/// Assigns claims to workers.
class dispatcher final : public worker_task,
                               public ticket_gate,
                               public std::enable_shared_from_this<dispatcher> {
 public:
  struct options {
    std::size_t max_workers = 1;   ///< number of workers
    std::size_t together = 1;   ///< preferred claim, in tickets
    std::size_t group = 1;      ///< rows of a batch; a claim never crosses a multiple of it
    std::int64_t sleep_ns = 1'000'000;   ///< how long a worker without a claimable ticket sleeps
  };

  /// `work` must outlive the last task, see join().
  dispatcher(dispatcher_work& work, options o);

  /// Sets the executor that runs the workers. Without an executor only advance() runs claims.
  void attach(worker_executor* e) noexcept;

  /// Declares the tickets below `tickets` available: their input exists.
  void set_available(std::uint64_t tickets) override;
  /// Raises the limit: tickets below `tickets` have space for their result. A lower value has no effect.
  void set_limit(std::uint64_t tickets);
  /// Returns the number of tickets whose input exists.
  std::uint64_t available() const noexcept override { return available_.load(); }
  void set_last() noexcept override;
  /// Blocks until this ticket is available, whether or not it may be claimed. Returns false if it never will be. One
  /// thread may call it, with tickets that do not decrease.
  bool wait_for_available(std::uint64_t ticket);

  /// Returns the times of a worker, in which it records its current ticket for waits().
  worker_times& times(std::size_t number) noexcept { return *workers_[number].times; }

  /// Runs one claim on the calling thread. Returns false if nothing is claimable.
  bool advance();

  /// Sets the number of active workers to `count`; at least 1, at most all. From then on the number no longer follows
  /// the cores. Has no effect if the stage runs on its own threads.
  void set_active(std::size_t count);

  /// Requests that all workers leave after their current claim. Does not wait.
  void stop() noexcept;
  /// Blocks until no worker is running. Called after stop().
  void join() noexcept;

  /// Returns the total nanoseconds of work of all workers.
  std::uint64_t busy_ns() const noexcept;
  /// Returns the times and event counts of all workers.
  stage_statistics statistics(std::string name, std::uint64_t now_ns) const;

  /// Returns the state of the workers as text:
  ///   "1 of 4 at work, the longest for 31.2 s at sample 1580 (batch 6), thread 0x7f21c8d3a6c0; 3 wait for input"
  std::string waits(std::uint64_t now_ns) const;
  /// Adds the latest spans of each worker to a timeline.
  void add_spans(timeline& t, const std::string& name, std::uint64_t start_ns) const;

  /// Runs claims as worker `index` until no ticket is claimable for a while, the worker is inactive, or its turn is
  /// over.
  void run_as_worker(std::size_t index) noexcept override;

 private:
  static constexpr std::uint64_t turn_ns = 5'000'000;
  static constexpr std::uint64_t cheap_ns = 20'000;
  static constexpr std::uint64_t fit_interval_ns = 50'000'000, never = ~std::uint64_t{0};

  struct alignas(64) worker {
    std::size_t at_once = 1;
    bool is_running = false;   // guarded by mutex_
    std::unique_ptr<worker_times> times{};
  };

  bool on_workers() const noexcept { return executor_ && executor_->shared(); }

  std::size_t claim(std::size_t most, std::uint64_t& first) noexcept;
  std::uint64_t batch_of(std::uint64_t ticket) const noexcept;
  /// Returns the missing condition of the next ticket: space or input.
  worker_times::waits_for missing_condition() const noexcept;

  /// Returns the claimable tickets from `head` on. Tickets wait until the preferred claim is complete, except at the
  /// end of a group: groups are always filled up.
  std::uint64_t claimable(std::uint64_t head) const noexcept;

  /// Doubles the claim for cheap tickets, so that claiming costs nothing. Halves it for expensive tickets, so that the
  /// workers finish evenly.
  void adapt(worker& s, std::uint64_t spent_ns, std::size_t count) const noexcept;

  /// Periodically adjusts the number of active workers to the available CPU time.
  void fit_to_cores(std::uint64_t now) noexcept;
  /// Sets the number of active workers; at least 1, at most all. Under mutex_.
  void open_first(std::size_t count, std::uint64_t now) noexcept;

  /// Wakes or starts workers while tickets are claimable.
  void wake_workers();
  /// Lets a worker sleep until it is woken. Returns false if it must leave instead.
  bool sleep(std::size_t index, std::uint64_t now) noexcept;
  /// Records whether wake_workers() has no worker to wake or to start. Under mutex_.
  void update_all_running() noexcept;
  bool submit(std::size_t index) noexcept;
  void leave(std::size_t index, std::uint64_t now) noexcept;

  dispatcher_work* const work_;
  const options options_;
  std::size_t max_at_once_ = 1;
  worker_executor* executor_ = nullptr;

  alignas(64) std::atomic<std::uint64_t> head_{0};
  alignas(64) std::atomic<std::uint64_t> available_{0};
  std::atomic<std::uint64_t> limit_{0};
  std::atomic<std::uint64_t> awaited_{0};   // ticket of the latest wait_for_available()
  std::atomic<bool> stopped_{false}, last_known_{false};
  std::atomic<std::size_t> open_;   // written under mutex_
  std::atomic<bool> all_running_{false};
  std::atomic<std::uint64_t> fit_due_ns_{never};
  std::mutex mutex_;
  std::condition_variable worker_left_, worker_called_;
  doorbell awaited_available_;
  std::size_t running_ = 0, asleep_ = 0, called_ = 0;   // asleep_: running, without those that are called
  worker_times::measured_times fitted_{};   // the basis of the current number of active workers
  aligned_vector<worker> workers_;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/work/schedule/impl/dispatcher.inl>
#endif
