// Measures the time of the trainer in next() and in the training step. Also records the numbers of ready slots and
// prefetched bytes at each call of next().
//
//   times.start(started_ns);
//   times.call(called_ns, arrived_ns);      // next() begins; the previous batch's copy arrived at arrived_ns
//   times.record_return(returned_ns, mr::detail::trainer_times::kind::batch, {.ready_slots = 3});
//   times.add_to(statistics, times.clock(now_ns));
//
// A training step lasts from the delivery of a batch to the next call of next(). A batch may be delivered before its
// copy to the device has arrived. The part of the step before the arrival counts as waiting for data. The time from the
// end of an epoch to the next call of next(), for example for validation, is a pause. A pause counts neither as step
// nor as wait. The wall time excludes pauses. The clock stops at the end of the run. wait_ns() does not include the
// wait for the first batch. The delivery times of the last 2048 batches are stored.
// Errors: none. Threads: the trainer calls call() and record_return(). Any thread may call the other members.
#pragma once

#include <millrace/measure/values/timeline.hpp>
#include <millrace/measure/values/flow_statistics.hpp>
#include <millrace/measure/values/histogram.hpp>

#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The times of the trainer.
class trainer_times {
 public:
  enum class kind : std::uint8_t { batch, pause, end };
  static constexpr std::size_t stored_batches = 2048;

  /// The trainer's current state.
  struct state {
    bool watched = false;   ///< false between epochs and after the end
    bool waits = false;     ///< true in next(), false in the step
    std::uint64_t since_ns = 0, batches = 0;
  };
  state now() const noexcept;

  /// Returns a text such as "trainer: waits in next() for batch 12, for 31.2 s".
  std::string waits(std::uint64_t now_ns) const;

  /// The fill levels at a call of next().
  struct fill_levels {
    std::size_t ready_slots = 0, read_ahead_bytes = 0;
  };

  void start(std::uint64_t now_ns);
  /// Records that the trainer waits for a part of the session's start, such as planning the order (watched_start_steps
  /// in run/stall_watcher.hpp). A long wait is reported as a stall.
  void watch(std::uint64_t now_ns);
  /// Records that the trainer no longer waits. Called at the end of the session's start, and at the beginning of a part
  /// of the start that reports its own stalls.
  void leave(std::uint64_t now_ns);

  /// Records a call of next(). `arrived_ns` is the time at which the copy of the last delivered batch arrived; 0 if
  /// unknown.
  void call(std::uint64_t now_ns, std::uint64_t arrived_ns = 0) noexcept;
  /// Records the result of next(): a batch, a pause between epochs, or the end.
  void record_return(std::uint64_t now_ns, kind what, const fill_levels& levels) noexcept;

  std::uint64_t started_ns() const noexcept { return started_ns_; }
  std::uint64_t wait_ns() const noexcept { return wait_ns_.load(std::memory_order_relaxed); }
  std::uint64_t step_ns() const noexcept { return step_ns_.load(std::memory_order_relaxed); }
  std::uint64_t first_batch_ns() const noexcept { return first_batch_ns_.load(std::memory_order_relaxed); }
  /// Returns `now_ns`, or the end of the run, whichever is earlier.
  std::uint64_t clock(std::uint64_t now_ns) const noexcept;

  /// Adds the stage "step", the wall time and the queues. Call this function after all other stages have added their
  /// measurements.
  void add_to(flow_statistics& f, std::uint64_t now_ns) const;

  /// Adds the trainer's track, the deliveries and the fill levels.
  void add_to(timeline& t) const;

  /// Returns the last deliveries, oldest first.
  std::vector<delivered_batch> deliveries() const;

 private:
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t n) noexcept;

  std::uint64_t started_ns_ = 0;
  std::uint64_t called_ns_ = 0, left_ns_ = 0;   // used only by the trainer
  std::atomic<std::uint64_t> wait_ns_{0}, step_ns_{0}, copy_wait_ns_{0}, first_batch_ns_{0};
  std::atomic<std::uint64_t> paused_ns_{0}, paused_since_ns_{0}, ended_ns_{0};
  own_histogram waits_, steps_;
  mutable std::mutex mutex_;
  state state_{};
  std::vector<delivered_batch> deliveries_;
  std::uint64_t batches_ = 0, ready_sum_ = 0, read_ahead_sum_ = 0;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/measure/meters/impl/trainer_times.inl>
#endif
