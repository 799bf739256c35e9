// Measures the trainer's side of a run: its time in next(), its time in the step, and the fill levels at each call.
//
//   times.start(started_ns);
//   times.call(called_ns, arrived_ns);      // next() begins; the copy of the batch before arrived at arrived_ns
//   times.record_return(returned_ns, mr::detail::trainer_times::kind::batch, {.ready_slots = 3});
//   times.add_to(figures, times.clock(now_ns));
//
// A step lasts from a batch to the next call of next(). A trainer that reads the result of its step also waits there
// for a copy that is still in progress; until that copy has arrived, the step counts as starved. After the end of an
// epoch in a loop, the trainer's time (validation) is neither step nor wait. It is a pause, which the wall time
// excludes.
// The clock stops at the end of the run. The wait for the first batch is part of the start of the run, not a wait.
// The delivery times of the last 2048 batches are stored.
// Errors: none. Threads: the trainer calls call() and record_return(), any thread the rest.
#pragma once

#include <millrace/measure/values/timeline.hpp>
#include <millrace/measure/values/flow_statistics.hpp>
#include <millrace/measure/values/histogram.hpp>

#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Times of the trainer.
class trainer_times {
 public:
  enum class kind : std::uint8_t { batch, pause, end };
  static constexpr std::size_t stored_batches = 2048;

  /// The trainer's current state.
  struct state {
    bool watched = false;    ///< false between epochs and after the end
    bool waits = false;      ///< true in next(), false in the step
    std::uint64_t since_ns = 0, batches = 0;
  };
  state now() const noexcept;

  /// Returns a text like "trainer: waits in next() for batch 12, for 31.2 s".
  std::string waits(std::uint64_t now_ns) const;

  /// The fill levels at a call of next().
  struct fill_levels {
    std::size_t ready_slots = 0, read_ahead_bytes = 0;
  };

  void start(std::uint64_t now_ns);
  /// Begins to watch the trainer, which waits for a step of the session's start.
  void watch(std::uint64_t now_ns);
  /// Records that the session has started and the trainer does something else.
  void leave(std::uint64_t now_ns);

  /// Records a call of next(). `arrived_ns`: when the copy of the last delivered batch arrived; 0 if unknown.
  void call(std::uint64_t now_ns, std::uint64_t arrived_ns = 0) noexcept;
  /// Records the return of next(): a batch, a pause between epochs, or the end.
  void record_return(std::uint64_t now_ns, kind what, const fill_levels& levels) noexcept;

  std::uint64_t started_ns() const noexcept { return started_ns_; }
  std::uint64_t wait_ns() const noexcept { return wait_ns_.load(std::memory_order_relaxed); }
  std::uint64_t step_ns() const noexcept { return step_ns_.load(std::memory_order_relaxed); }
  std::uint64_t first_batch_ns() const noexcept { return first_batch_ns_.load(std::memory_order_relaxed); }
  /// Returns `now_ns`, or the end of the run if that was earlier.
  std::uint64_t clock(std::uint64_t now_ns) const noexcept;

  /// Adds the stage "step", the wall time and the queues. Call it after all other stages have added their measurements.
  void add_to(flow_statistics& f, std::uint64_t now_ns) const;

  /// Adds the trainer's track, the deliveries and the fill levels.
  void add_to(timeline& t) const;

  /// Returns the last deliveries, in order.
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

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/measure/meters/impl/trainer_times.inl>
#endif
