// Assigns tickets to workers. The ticket of a sample is its sequence number. A worker claims a few consecutive tickets
// at a time, and runs its segment (a group of stages) on their samples.
//
//   auto d = mr::detail::make_aligned_shared<mr::detail::dispatcher>(
//       segment, mr::detail::dispatcher::options{.max_workers = 8, .together = 2, .group = 256});
//   d->attach(&executor);
//   d->set_available(n);      // tickets below n have their input           (called by the previous source or segment)
//   d->set_limit(m);          // tickets below m have space for the result  (called when a slot is freed)
//
// Tickets: with B rows per batch, ticket t is row t % B of batch t / B. Therefore the order does not depend on the
// number of workers.
// Claims: a worker can claim tickets that are below both `available` and `limit`. A claim has `together` tickets, or
// more if tickets are cheap. No claim crosses a multiple of `group`, so that all its rows are in one batch.
// Sleeping: a worker that finds no ticket sleeps for up to 1 ms. Then the worker leaves: it returns its thread to the
// executor. The thread that raises `available` or `limit` wakes workers that sleep, and restarts workers that have
// left. If the executor serves several stages, workers leave without sleeping, because tasks of other stages may need
// the thread.
// Active workers: if there are more workers than cores, the available CPU time limits the number of active workers. A
// worker that becomes inactive finishes its claim and leaves. If a worker blocks in a callable, it does not use a core,
// and another worker becomes active.
//
// Threads: any thread may call any member, but only one thread may call wait_for_available().
// Lifetime: tasks share ownership of the dispatcher. A task accesses the segment only while its worker is running.
// After stop() and join() no worker is running, and no thread uses the executor.
#pragma once

#include <millrace/base/aligned_allocator.hpp>
#include <millrace/item/owner.hpp>
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
  /// Runs `count` tickets from `first` on, as the worker with this index. No other thread uses the same index at the
  /// same time.
  virtual void run(std::size_t worker, std::uint64_t first, std::size_t count) noexcept = 0;
  /// Passes on the results of a claim. The dispatcher calls publish() after it has called run() and recorded the times.
  virtual void publish(std::uint64_t first, std::size_t count) noexcept = 0;
};

/// Assigns claims to workers.
class dispatcher final : public worker_task,
                         public claimed_ticket_gate,
                         public std::enable_shared_from_this<dispatcher> {
 public:
  struct options {
    std::size_t max_workers = 1;         ///< number of workers
    std::size_t together = 1;            ///< preferred number of tickets in a claim
    std::size_t group = 1;               ///< rows of a batch; no claim crosses a multiple of this number
    std::int64_t sleep_ns = 1'000'000;   ///< maximum sleep of a worker without a claimable ticket
  };

  /// `work` must exist until join() has returned.
  dispatcher(dispatcher_work& work, options o);
  MILLRACE_RARE ~dispatcher() override = default;

  /// Sets the executor that runs the workers. Without an executor, only advance() runs claims.
  void attach(worker_executor* e) noexcept;

  /// Declares that the input of all tickets below `tickets` exists.
  void set_available(std::uint64_t tickets) override;
  /// Raises the limit. All tickets below `tickets` have space for their results. A lower value has no effect.
  void set_limit(std::uint64_t tickets);
  /// Returns the number of tickets whose input exists.
  std::uint64_t available() const noexcept override { return available_.load(); }
  void set_last() noexcept override;
  /// Blocks until the input of this ticket exists, even if the ticket is not claimable. Returns false if the input will
  /// never exist. Only one thread may call this function, and the tickets of its calls must not decrease.
  bool wait_for_available(std::uint64_t ticket);

  /// Lets another thread claim tickets with claim_surplus(). `listener` is called when tickets may have become
  /// claimable, and must outlive all threads of the run. At most `max_returned` tickets of give_back() may wait for
  /// workers at the same time.
  void share_with(space_listener& listener, std::size_t max_returned);
  /// Returns whether claim_surplus() may succeed.
  bool has_surplus() const noexcept { return surplus(head_.load()) > 0; }
  /// Claims up to `most` tickets of one group. Claims nothing if the next ticket is below `from`. Leaves enough tickets
  /// for two claims of each active worker. Returns the number of claimed tickets, and sets `first` to the first claimed
  /// ticket.
  std::size_t claim_surplus(std::size_t most, std::uint64_t from, std::uint64_t& first) noexcept;
  /// Hands tickets back to the workers, which claim these tickets before all others. All tickets must be results of
  /// claim_surplus(), and in one group.
  void give_back(std::uint64_t first, std::size_t count) noexcept;
  /// Returns whether a worker could claim a ticket.
  bool has_claimable() const noexcept { return claimable(head_.load()) > 0 || returned_count_.load() > 0; }

  /// Returns the time record of a worker. The record also contains the worker's current ticket, which waits() reads.
  worker_times& times(std::size_t number) noexcept { return *workers_[number].times; }

  /// Runs one claim on the calling thread. Returns false if nothing is claimable.
  bool advance();

  /// Sets the number of active workers to `count`, clamped to [1, max_workers]. From then on, available CPU time does
  /// not change the number. Has no effect if the executor has separate threads for this segment.
  void set_active(std::size_t count);

  /// Requests that all workers leave after their current claims. Does not wait.
  void stop() noexcept;
  /// Blocks until no worker is running and no thread uses the executor. Called after stop().
  void join() noexcept;

  /// Returns the total working time of all workers, in nanoseconds.
  std::uint64_t busy_ns() const noexcept;
  /// Returns the times and event counts of all workers.
  stage_statistics statistics(std::string name, std::uint64_t now_ns) const;

  /// Returns the state of the workers as text:
  ///   "1 of 4 at work, the longest for 31.2 s at sample 1580 (batch 6), thread 0x7f21c8d3a6c0; 3 wait for input"
  std::string waits(std::uint64_t now_ns) const;
  /// Adds the latest spans of each worker to a timeline.
  void add_spans(timeline& t, const std::string& name, std::uint64_t start_ns) const;

  /// Runs claims as worker `index`. Ends if no ticket is claimable for a while, if the worker is inactive, or after
  /// `turn_ns`. After `turn_ns`, the executor queues the worker again, so that other tasks can run before its next
  /// turn.
  void run_as_worker(std::size_t index) noexcept override;

 private:
  static constexpr std::uint64_t turn_ns = 5'000'000;
  static constexpr std::uint64_t cheap_ns = 20'000;
  static constexpr std::uint64_t fit_interval_ns = 50'000'000, never = ~std::uint64_t{0};

  struct alignas(64) worker {
    std::size_t at_once = 1;
    bool is_running = false;   // guarded by mutex_
    owner<worker_times> times{};
  };

  bool on_workers() const noexcept { return executor_ && executor_->shared(); }

  std::size_t claim(std::size_t most, std::uint64_t& first) noexcept;
  // Not inlined, so that claim() remains small.
  [[gnu::cold]] std::size_t claim_returned(std::size_t most, std::uint64_t& first) noexcept;
  /// Returns the number of ready tickets from `head` on, minus two claims for each active worker; at least 0.
  std::uint64_t surplus(std::uint64_t head) const noexcept;
  void report_tickets() noexcept {
    if (space_listener* const other = shared_with_.load()) [[unlikely]]
      other->space_freed();
  }
  std::uint64_t batch_of(std::uint64_t ticket) const noexcept;
  /// Returns the missing condition of the next ticket: space or input.
  worker_times::waits_for missing_condition() const noexcept;

  /// Returns the number of claimable tickets from `head` on. If these tickets do not complete a group, the number is
  /// rounded down to a multiple of `together`.
  std::uint64_t claimable(std::uint64_t head) const noexcept;

  /// Doubles the size of the worker's claims for cheap tickets, because each claim has a fixed cost. Halves the size
  /// for expensive tickets, so that all workers finish at about the same time.
  void adapt(worker& s, std::uint64_t spent_ns, std::size_t count) const noexcept;

  /// Periodically adjusts the number of active workers to the available CPU time.
  void fit_to_cores(std::uint64_t now) noexcept;
  /// Sets the number of active workers, clamped to [1, max_workers]. Requires mutex_.
  void open_first(std::size_t count, std::uint64_t now) noexcept;

  /// Wakes or starts workers while tickets are claimable.
  void wake_workers();
  /// Lets a worker sleep until another thread wakes it, for at most `sleep_ns`. Returns false if the worker must leave.
  bool sleep(std::size_t index, std::uint64_t now) noexcept;
  /// Sets `all_running_`: true if no worker sleeps and all active workers are running. Requires mutex_.
  void update_all_running() noexcept;
  /// Submits a task for a running worker. Requires that the caller has incremented submits_, because the task may end
  /// before the executor returns.
  bool submit(std::size_t index) noexcept;
  void leave(std::size_t index, std::uint64_t now) noexcept;

  dispatcher_work* const work_;
  const options options_;
  std::size_t max_at_once_ = 1;
  worker_executor* executor_ = nullptr;   // null: only advance() runs claims
  std::size_t cores_ = 0;                 // cores() of the executor

  alignas(64) std::atomic<std::uint64_t> head_{0};
  alignas(64) std::atomic<std::uint64_t> available_{0};
  std::atomic<std::uint64_t> limit_{0};
  std::atomic<std::size_t> returned_count_{0};   // tickets in returned_; written under mutex_
  std::atomic<space_listener*> shared_with_{nullptr};
  std::atomic<std::uint64_t> awaited_{0};   // ticket of the last call of wait_for_available()
  std::atomic<bool> stopped_{false}, last_known_{false};
  std::atomic<std::size_t> open_;   // written under mutex_
  std::atomic<bool> all_running_{false};
  std::atomic<std::uint64_t> fit_due_ns_{never};
  std::atomic<std::size_t> submits_{0};   // current calls of submit(); decremented under mutex_
  std::mutex mutex_;
  std::condition_variable worker_left_, worker_called_;
  doorbell awaited_available_;
  std::size_t running_ = 0, asleep_ = 0, called_ = 0;   // asleep_: sleeping workers that were not woken yet
  worker_times::measured_times fitted_{};   // the times from which the number of active workers was computed
  struct returned_tickets {
    std::uint64_t first;
    std::size_t count;
  };
  std::vector<returned_tickets> returned_;   // guarded by mutex_
  aligned_vector<worker> workers_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/work/schedule/impl/dispatcher.inl>
#endif
