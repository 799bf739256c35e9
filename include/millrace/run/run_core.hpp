// The part of a session that does not depend on its flow's type: threads, slots, delivery, metrics, errors, shutdown.
//
//   mr::detail::run_core core(options, settings);      // creates the executor of the workers and the batch output
//   core.start({.order = &order, .read = &reading, .segments = nodes, .last = &last});
//   while (mr::batch_lease b = core.next(false)) train_step(b.size());
//   core.shut_down();
//
// start() runs a list of named steps. If a step throws, start() shuts the run down.
// Errors: the errors of session. Threads: the trainer is the user's thread that requests batches. Several threads may
// request batches, but only one call may be active at a time. The class `call` checks this rule. Any thread may call
// stats(), statistics(), waits() and events().
// Lifetime: the parts passed to start() must exist until shut_down() returns.
#pragma once

#include <millrace/deliver/batch_lease.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/measure/meters/run_statistics.hpp>
#include <millrace/measure/values/timeline.hpp>
#include <millrace/measure/meters/trace_range.hpp>
#include <millrace/measure/meters/trainer_times.hpp>
#include <millrace/read/run/planned_run.hpp>
#include <millrace/read/stage/read_stage_base.hpp>
#include <millrace/run/concurrency.hpp>
#include <millrace/run/damage_account.hpp>
#include <millrace/run/flow_facts.hpp>
#include <millrace/run/session_errors.hpp>
#include <millrace/run/stall_watcher.hpp>
#include <millrace/work/batch/batch_segment.hpp>
#include <millrace/work/schedule/worker_executor.hpp>
#include <millrace/work/segment/final_segment.hpp>

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The parts of a run that depend on the flow's type. All of them must outlive the run.
struct run_parts {
  planned_run* order = nullptr;
  read_stage* read = nullptr;
  std::vector<pipeline_node*> segments{};   ///< in the order of the flow
  final_segment* last = nullptr;
  const damage_rule* damaged = nullptr;
};

/// Runs the parts of one session.
class run_core {
 public:
  run_core(const session_options& options, const run_settings& settings);
  run_core(const run_core&) = delete;
  run_core& operator=(const run_core&) = delete;
  ~run_core() { shut_down(); }

  /// Returns the executor of the workers; null without workers.
  worker_executor* arena() const noexcept { return arena_.get(); }
  /// Returns the slots that the workers fill.
  batch_ring& host_slots() const noexcept { return output_->host_slots(); }
  /// Returns the numbers of workers and I/O threads.
  const concurrency& threads() const noexcept { return concurrency_; }
  /// Returns the cores to which the run's threads are bound; empty if they may run on all cores.
  const std::vector<unsigned>& cores() const noexcept { return cores_; }
  /// Returns the outlet for the notices of the session.
  notice_outlet& notices() noexcept { return notices_; }
  /// Returns the options, which checked() (session_errors.hpp) has validated and completed.
  const session_options& options() const noexcept { return options_; }
  /// Returns the memory budget of the run, in bytes.
  std::size_t budget_bytes() const noexcept { return budget_bytes_; }
  /// Returns the limit for prefetched samples that no worker has claimed yet, in bytes.
  std::size_t read_ahead_bytes() const noexcept { return read_ahead_bytes_; }
  /// Returns the number of rows in a full batch.
  std::size_t batch_rows() const noexcept { return settings_.batch_rows; }
  /// Returns the object that decides whether the run continues after a lost shard (a shard that was read only in part).
  /// Returns null if the first lost shard ends the run.
  lost_shards* lost() noexcept { return options_.on_damage.policy == damage::fail ? nullptr : &lost_; }

  /// Returns the steps of the run's start.
  watched_start_steps& start_of_run() noexcept { return start_; }

  /// Starts the run. If the first samples have an error, next() throws this error.
  void start(run_parts parts);
  /// Stops and joins all threads. Later calls have no effect.
  void shut_down() noexcept;

  /// Marks a call of the trainer as active while this object exists. The constructor throws setup_error if another call
  /// is active.
  class call {
   public:
    explicit call(run_core& of) : of_(&of) {
      if (of.called_.exchange(true, std::memory_order_acquire)) throw_called_twice();
    }
    call(const call&) = delete;
    call& operator=(const call&) = delete;
    ~call() { of_->called_.store(false, std::memory_order_release); }

   private:
    run_core* const of_;
  };

  // The trainer calls these functions while a `call` object exists.
  /// Returns the next batch in order, or an empty batch at the end of the run. If `stop_at_epoch` is true, also returns
  /// an empty batch at the end of an epoch.
  batch_lease next(bool stop_at_epoch);
  /// Waits at most `time_ns` nanoseconds for the next event of a loop over `epoch`: a batch, the end or an error.
  /// Returns whether this event has occurred. In the statistics, the training step ends when this call begins to wait.
  bool wait_at_most(std::uint64_t time_ns, std::uint64_t epoch);
  /// Returns next(false). Later loops cannot request an epoch before the epoch of this batch.
  batch_lease next_of_any_epoch() {
    batch_lease b = next(false);
    if (b && b.epoch() > first_open_epoch_) first_open_epoch_ = b.epoch();
    return b;
  }
  /// Begins a loop: advances `current` to the first batch of `epoch`, by the rules of step(). Returns false if the loop
  /// has no batch. Throws setup_error if an earlier loop has passed `epoch`, or if the run has ended.
  bool begin(batch_lease& current, std::uint64_t epoch);
  /// Advances `current` to the next batch of `epoch`, or of any epoch if `epoch` is `endless`. Returns false at the
  /// end.
  bool step(batch_lease& current, std::uint64_t epoch);

  /// Stops all threads, and waits until calls on other threads have returned. Called by the destructor of a session.
  void wait_for_calls() noexcept;
  /// Returns whether this process was forked from the process that created the run. If so, the run's threads do not
  /// exist here.
  bool is_forked() const noexcept;

  /// Returns the counters of the run.
  run_stats stats() const;
  /// Returns the metrics since the start.
  flow_statistics statistics() const;
  /// Returns the metrics without the warm-up.
  flow_statistics statistics_after_warm_up() const { return warm_ups_.without(statistics()); }
  /// Returns the current wait of the trainer and of each pipeline node, one line each, the trainer first.
  std::string waits() const;
  /// Returns the last events of the threads.
  timeline events() const;
  /// Returns the number of slots. Each delivered batch uses one slot.
  std::size_t slots() const noexcept { return output_->lease_slots(); }
  /// Returns the number of slots whose batches are in use.
  std::size_t leased() const noexcept { return output_->leased(); }
  /// Returns the texts of the notices at the start.
  const std::string& description() const noexcept { return description_; }
  std::string rows_text() const { return options_.rows ? options_.rows->describe() : std::string(); }

 private:
  /// Called when the executor has an error.
  void wake_trainer() noexcept {
    parts_.last->tickets().set_last();   // ends the wait of learn_shapes()
    output_->bell().ring();
  }
  // The steps of start(), in the order of execution.
  void connect(run_parts parts);
  void start_threads();
  bool learn_shapes();
  void allocate();
  void open_slots();
  void report_start();

  void end_step() noexcept;
  bool wait_for_sample(std::uint64_t position);
  bool advance_any();
  batch_ring::take_result wait_for(std::uint64_t batch, bool stop_at_epoch);
  batch_origin account_for(ready_batch& b) noexcept;
  batch_lease lease(ready_batch& b);
  /// Calls `act`, which updates metrics. If memory is exhausted, the metrics are not updated, but no batch is lost.
  template <class Act>
  static void without_memory_skip(const Act& act) {
    try {
      act();
    } catch (const std::bad_alloc&) {}
  }
  void end_of_run();
  [[noreturn]] void fail(std::exception_ptr why);
  void deliver_notices() noexcept {
    for (const notice& n : counts_.take_posted()) notices_.deliver(n);
  }

  const session_options options_;
  const run_settings settings_;
  const std::vector<unsigned> cores_;
  const unsigned workers_;
  notice_outlet notices_;
  concurrency concurrency_;
  const int process_;
  const std::size_t budget_bytes_, read_ahead_bytes_;
  event_counts counts_;
  damage_account damaged_;
  lost_shards lost_;
  owner<worker_executor> arena_;
  const std::shared_ptr<batch_output> output_;
  run_parts parts_;
  owner<row_feed> rows_;                // null if the workers compute all rows
  std::vector<pipeline_node*> nodes_;   // in the order of the flow
  std::size_t slot_bytes_ = 0;
  std::string description_;
  std::vector<notice> start_notices_;   // added by allocate(), sent by report_start()
  std::atomic<bool> started_{false};    // true if waits() may query all nodes
  std::atomic<bool> called_{false};     // true while a call of the trainer is active
  bool down_ = false;

  // Used by the trainer only.
  batch_lease returned_batch_;
  std::uint64_t next_batch_ = 0;
  bool step_ended_ = false;              // true if wait_at_most() has already ended the training step
  std::uint64_t last_epoch_ = endless;   // epoch of the last batch in a loop over one epoch
  std::uint64_t first_open_epoch_ = 0;   // first epoch that a loop may still request
  run_end end_;
  trace_span step_range_;   // from a delivery to end_step()

  std::atomic<std::uint64_t> delivered_{0}, samples_{0}, delivered_bytes_{0};
  trainer_times times_;
  watched_start_steps start_{times_};
  warm_up_statistics warm_ups_;
  owner<stall_watcher> watcher_;
  const process_statistics at_start_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/run_core.inl>
#endif
