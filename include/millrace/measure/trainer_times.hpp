// The trainer's side of a run's figures: how long it waited in next(), how long it was away, how full the rings were.
//
//   times.call(now, arrived);   ... waits ...   times.answer(now, trainer_times::kind::batch, {.ready_slots = 3});
//   times.add_to(figures, times.clock(now));
//
// From a batch to the next call is a step; but who reads the step's result waits in it for a copy that was still under
// way: until that arrives the step starves. After the end of an epoch that a loop asked for, whatever the trainer does
// (validation) is neither step nor wait: a pause, left out of the wall time. After the run's end the clock stands.
// The first batch's wait is the start of the run, and no wait either. Of each of the last 2048 batches it is kept when
// it came. Errors: none. Threads: call() and answer() by the trainer, the rest by any.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/measure/flow_figures.hpp>
#include <millrace/measure/histogram.hpp>
#include <millrace/measure/read_meter.hpp>
#include <millrace/measure/timeline.hpp>

#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI {

/// A template only so that including it costs little.
template <class = void>
class basic_trainer_times {
 public:
  enum class kind : std::uint8_t { batch, pause, end };
  static constexpr std::size_t kept_batches = 2048;

  struct state {
    bool watched = false;    ///< not between epochs, nor at the end
    bool waits = false;      ///< in next(); else away
    std::uint64_t since_ns = 0, batches = 0;
  };
  state now() const noexcept {
    const std::lock_guard lock(mutex_);
    return state_;
  }

  /// "trainer: waits in next() for batch 12 since 31.2 s"
  std::string waits(std::uint64_t now_ns) const {
    const state s = now();
    const std::uint64_t number = s.batches - (s.waits || s.batches == 0 ? 0 : 1);
    return (s.waits ? "trainer: waits in next() for batch " : "trainer: away with batch ") + std::to_string(number) +
           " since " + detail::seconds_text(now_ns - std::min(now_ns, s.since_ns));
  }

  /// The stores, as a call of next() found them.
  struct stores {
    std::size_t ready_slots = 0, read_ahead_bytes = 0;
  };

  void start(std::uint64_t now_ns) {
    started_ns_ = now_ns;
    state_ = state{.watched = true, .since_ns = now_ns};
    kept_.reserve(kept_batches);
  }

  /// `arrived_ns`: when the batch that was handed out last was there, if later than it was handed out and known.
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
    // Since the last batch: whoever waits was waited for before.
    state_ = state{.watched = true, .waits = true, .since_ns = now_ns, .batches = batches_};
    if (left != 0 && batches_ > 0) kept_[(batches_ - 1) % kept_batches].step_ns = step;
  }
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
    if (kept_.size() < kept_batches) kept_.push_back(here);   // room was reserved
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
  /// `now`, or when the run had ended.
  std::uint64_t clock(std::uint64_t now_ns) const noexcept {
    const std::uint64_t ended = ended_ns_.load(std::memory_order_relaxed);
    return ended != 0 && ended < now_ns ? ended : now_ns;
  }

  /// After all other stages. `batch_samples` are in a batch.
  void add_to(flow_figures& f, std::uint64_t now_ns) const {
    std::uint64_t paused = paused_ns_.load(std::memory_order_relaxed);
    if (const std::uint64_t since = paused_since_ns_.load(); since != 0 && since < now_ns) paused += now_ns - since;
    f.wall_ns = now_ns - started_ns_ - std::min(paused, now_ns - started_ns_);
    // Who was full by then stood still meanwhile; who was not, worked and is none the worse for it.
    for (stage_figures& s : f.stages) s.blocked_ns -= std::min(s.blocked_ns, paused * s.seats);
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

  /// The trainer's track, and the stores as it found them.
  void add_to(timeline& t) const {
    t.deliveries = deliveries();
    const std::uint32_t track = t.add_track("trainer");
    for (const delivered_batch& d : t.deliveries) {
      const auto wait = static_cast<std::int64_t>(d.wait_ns), step = static_cast<std::int64_t>(d.step_ns);
      t.spans.push_back({track, "wait", d.at_ns - wait, d.at_ns});   // none of the stages that a batch passes
      if (step > 0) t.spans.push_back({track, "step", d.at_ns, d.at_ns + step, d.number});
      t.counters.push_back({"ready batches", d.at_ns, static_cast<double>(d.ready_slots)});
      t.counters.push_back({"read ahead (MB)", d.at_ns, 1e-6 * static_cast<double>(d.read_ahead_bytes)});
    }
  }

  /// The last ones, in order.
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
  std::uint64_t called_ns_ = 0, left_ns_ = 0;   // of the trainer only
  std::atomic<std::uint64_t> wait_ns_{0}, step_ns_{0}, copy_wait_ns_{0}, first_batch_ns_{0};
  std::atomic<std::uint64_t> paused_ns_{0}, paused_since_ns_{0}, ended_ns_{0};
  own_histogram waits_, steps_;
  mutable std::mutex mutex_;
  state state_{};
  std::vector<delivered_batch> kept_;
  std::uint64_t batches_ = 0, ready_sum_ = 0, read_ahead_sum_ = 0;
};
using trainer_times = basic_trainer_times<>;

}}  // namespace millrace
