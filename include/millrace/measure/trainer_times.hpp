// Measures the trainer's side of a run: its time in next(), its time in the step, and the fill levels that it finds.
//
//   times.start(started_ns);
//   times.call(called_ns, arrived_ns);      // next() begins; the copy of the batch before arrived at arrived_ns
//   times.answer(answered_ns, mr::detail::trainer_times::kind::batch, {.ready_slots = 3});   // next() returns a batch
//   times.add_to(figures, times.clock(now_ns));
//
// A step lasts from a batch to the next call of next(). A trainer that reads the result of its step also waits there
// for a copy that is still under way; until that copy has arrived, the step counts as starved. After the end of an
// epoch that a loop asked for, the trainer's time (validation) is neither step nor wait. It is a pause, which the wall
// time leaves out.
// After the end of the run the clock stands still. The wait for the first batch is the start of the run, not a wait.
// The delivery times of the last 2048 batches are kept.
// Errors: none. Threads: the trainer calls call() and answer(), any thread the rest.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/measure/flow_figures.hpp>
#include <millrace/measure/histogram.hpp>
#include <millrace/measure/read_meter.hpp>
#include <millrace/measure/timeline.hpp>

#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Times of the trainer.
class trainer_times {
 public:
  enum class kind : std::uint8_t { batch, pause, end };
  static constexpr std::size_t kept_batches = 2048;

  /// The trainer's current state.
  struct state {
    bool watched = false;    ///< false between epochs and after the end
    bool waits = false;      ///< true in next(), false in the step
    std::uint64_t since_ns = 0, batches = 0;
  };
  state now() const noexcept {
    const std::lock_guard lock(mutex_);
    return state_;
  }

  /// Returns a text like "trainer: waits in next() for batch 12 since 31.2 s".
  std::string waits(std::uint64_t now_ns) const {
    const state s = now();
    const std::uint64_t number = s.batches - (s.waits || s.batches == 0 ? 0 : 1);
    return (s.waits ? "trainer: waits in next() for batch " : "trainer: away with batch ") + std::to_string(number) +
           " since " + detail::seconds_text(now_ns - std::min(now_ns, s.since_ns));
  }

  /// The fill levels that a call of next() found.
  struct stores {
    std::size_t ready_slots = 0, read_ahead_bytes = 0;
  };

  void start(std::uint64_t now_ns) {
    started_ns_ = now_ns;
    state_ = state{.watched = true, .since_ns = now_ns};
    kept_.reserve(kept_batches);
  }

  /// Records a call of next(). `arrived_ns`: when the copy of the last delivered batch arrived; 0 if unknown.
  void call(std::uint64_t now_ns, std::uint64_t arrived_ns = 0) noexcept {
    called_ns_ = now_ns;
    if (const std::uint64_t since = paused_since_ns_.exchange(0); since != 0) add(paused_ns_, now_ns - since);
    const std::uint64_t left = std::exchange(left_ns_, 0), step = left != 0 ? now_ns - left : 0;
    if (left != 0) {
      const std::uint64_t without_data = std::clamp(arrived_ns, left, now_ns) - left;
      add(step_ns_, step);
      add(copy_wait_ns_, without_data);
      steps_.record(step - without_data);
    }
    const std::lock_guard lock(mutex_);
    // `batches` is the number of the batch that the trainer waits for from now on.
    state_ = state{.watched = true, .waits = true, .since_ns = now_ns, .batches = batches_};
    if (left != 0 && batches_ > 0) kept_[(batches_ - 1) % kept_batches].step_ns = step;
  }
  /// Records the return of next(): a batch, a pause between epochs, or the end.
  void answer(std::uint64_t now_ns, kind what, const stores& full) noexcept {
    if (what == kind::end) ended_ns_.store(now_ns, std::memory_order_relaxed);
    if (what == kind::pause) paused_since_ns_.store(now_ns, std::memory_order_relaxed);
    if (what != kind::batch) {
      const std::lock_guard lock(mutex_);
      state_.watched = false;
      return;
    }
    left_ns_ = now_ns;
    const std::uint64_t wait = now_ns - called_ns_;
    if (first_batch_ns_.load(std::memory_order_relaxed) == 0) {
      first_batch_ns_.store(now_ns - started_ns_, std::memory_order_relaxed);
    } else {
      add(wait_ns_, wait);
      waits_.record(wait);
    }
    const std::lock_guard lock(mutex_);
    const delivered_batch here{static_cast<std::int64_t>(now_ns - started_ns_), wait, 0, full.ready_slots,
                               full.read_ahead_bytes, batches_};
    if (kept_.size() < kept_batches) kept_.push_back(here);   // never allocates: start() reserved the space
    else kept_[batches_ % kept_batches] = here;
    ++batches_;
    state_ = state{.watched = true, .since_ns = now_ns, .batches = batches_};
    ready_sum_ += full.ready_slots;
    read_ahead_sum_ += full.read_ahead_bytes;
  }

  std::uint64_t started_ns() const noexcept { return started_ns_; }
  std::uint64_t wait_ns() const noexcept { return wait_ns_.load(std::memory_order_relaxed); }
  std::uint64_t step_ns() const noexcept { return step_ns_.load(std::memory_order_relaxed); }
  std::uint64_t first_batch_ns() const noexcept { return first_batch_ns_.load(std::memory_order_relaxed); }
  /// Returns `now_ns`, or the end of the run if that was earlier.
  std::uint64_t clock(std::uint64_t now_ns) const noexcept {
    const std::uint64_t ended = ended_ns_.load(std::memory_order_relaxed);
    return ended != 0 && ended < now_ns ? ended : now_ns;
  }

  /// Adds the stage "step", the wall time and the queues. Call it after all other stages have added their figures.
  void add_to(flow_figures& f, std::uint64_t now_ns) const {
    std::uint64_t paused = paused_ns_.load(std::memory_order_relaxed);
    if (const std::uint64_t since = paused_since_ns_.load(); since != 0 && since < now_ns) paused += now_ns - since;
    f.wall_ns = now_ns - started_ns_ - std::min(paused, now_ns - started_ns_);
    // During a pause, a stage with full output stood still, and that is no blocked time. A stage that was not full
    // worked on, so subtracting the pause does it no harm.
    for (stage_figures& s : f.stages) s.blocked_ns -= std::min(s.blocked_ns, paused * s.concurrency);
    const std::uint64_t copy_wait = copy_wait_ns_.load(std::memory_order_relaxed);
    stage_figures step{.name = "step", .kind = stage_kind::step, .busy_ns = step_ns() - std::min(copy_wait, step_ns()),
                       .starved_ns = wait_ns() + copy_wait};
    step.items = f.samples;
    step.service_ns = steps_.snapshot();
    f.stages.push_back(std::move(step));
    f.wait_ns = waits_.snapshot();
    const std::lock_guard lock(mutex_);
    if (batches_ == 0) return;
    const auto n = static_cast<double>(batches_);
    f.queues.push_back({"ready", "batches", static_cast<double>(ready_sum_) / n,
                        static_cast<double>(f.host_slots + f.device_slots)});
    f.queues.push_back({"read ahead", "MB", 1e-6 * static_cast<double>(read_ahead_sum_) / n,
                        1e-6 * static_cast<double>(f.read_ahead_bytes)});
  }

  /// Adds the trainer's track, the deliveries and the fill levels.
  void add_to(timeline& t) const {
    t.deliveries = deliveries();
    const std::uint32_t track = t.add_track("trainer");
    for (const delivered_batch& d : t.deliveries) {
      const auto wait = static_cast<std::int64_t>(d.wait_ns), step = static_cast<std::int64_t>(d.step_ns);
      t.spans.push_back({track, "wait", d.at_ns - wait, d.at_ns});   // no batch number: not a stage of the batch
      if (step > 0) t.spans.push_back({track, "step", d.at_ns, d.at_ns + step, d.number});
      t.counters.push_back({"ready batches", d.at_ns, static_cast<double>(d.ready_slots)});
      t.counters.push_back({"read ahead (MB)", d.at_ns, 1e-6 * static_cast<double>(d.read_ahead_bytes)});
    }
  }

  /// Returns the last deliveries, in order.
  std::vector<delivered_batch> deliveries() const {
    const std::lock_guard lock(mutex_);
    std::vector<delivered_batch> all(kept_);
    if (batches_ > kept_batches)
      std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(batches_ % kept_batches), all.end());
    return all;
  }

 private:
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t n) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  std::uint64_t started_ns_ = 0;
  std::uint64_t called_ns_ = 0, left_ns_ = 0;   // used only by the trainer
  std::atomic<std::uint64_t> wait_ns_{0}, step_ns_{0}, copy_wait_ns_{0}, first_batch_ns_{0};
  std::atomic<std::uint64_t> paused_ns_{0}, paused_since_ns_{0}, ended_ns_{0};
  own_histogram waits_, steps_;
  mutable std::mutex mutex_;
  state state_{};
  std::vector<delivered_batch> kept_;
  std::uint64_t batches_ = 0, ready_sum_ = 0, read_ahead_sum_ = 0;
};

}}}  // namespace millrace::detail
