// Definitions for trainer_times.hpp.
#pragma once

#include <millrace/measure/meters/trainer_times.hpp>

#include <millrace/base/clock.hpp>
#include <millrace/measure/meters/read_meter.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE trainer_times::state trainer_times::now() const noexcept {
  const std::lock_guard lock(mutex_);
  return state_;
}

MILLRACE_INLINE std::string trainer_times::waits(std::uint64_t now_ns) const {
  const state s = now();
  const std::uint64_t number = s.batches - (s.waits || s.batches == 0 ? 0 : 1);
  return (s.waits ? "trainer: waits in next() for batch " : "trainer: processes batch ") + std::to_string(number) +
         ", for " + seconds_text(now_ns - std::min(now_ns, s.since_ns));
}

MILLRACE_INLINE void trainer_times::watch(std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  state_ = state{.watched = true, .waits = true, .since_ns = now_ns};
}

MILLRACE_INLINE void trainer_times::leave(std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  state_ = state{.watched = true, .since_ns = now_ns};
}

MILLRACE_INLINE void trainer_times::start(std::uint64_t now_ns) {
  started_ns_ = now_ns;
  {
    const std::lock_guard lock(mutex_);   // a stall_watcher may read
    state_ = state{.watched = true, .since_ns = now_ns};
  }
  deliveries_.reserve(stored_batches);
}

MILLRACE_INLINE void trainer_times::call(std::uint64_t now_ns, std::uint64_t arrived_ns) noexcept {
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
  // `batches` is the number of the batch for which the trainer now waits.
  state_ = state{.watched = true, .waits = true, .since_ns = now_ns, .batches = batches_};
  if (left != 0 && batches_ > 0) deliveries_[(batches_ - 1) % stored_batches].step_ns = step;
}

MILLRACE_INLINE void trainer_times::record_return(std::uint64_t now_ns, kind what, const fill_levels& levels) noexcept {
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
  const delivered_batch here{
      static_cast<std::int64_t>(now_ns - started_ns_), wait, 0, levels.ready_slots, levels.read_ahead_bytes, batches_};
  if (deliveries_.size() < stored_batches) deliveries_.push_back(here);   // never allocates: start() reserved the space
  else deliveries_[batches_ % stored_batches] = here;
  ++batches_;
  state_ = state{.watched = true, .since_ns = now_ns, .batches = batches_};
  ready_sum_ += levels.ready_slots;
  read_ahead_sum_ += levels.read_ahead_bytes;
}

MILLRACE_INLINE std::uint64_t trainer_times::clock(std::uint64_t now_ns) const noexcept {
  const std::uint64_t ended = ended_ns_.load(std::memory_order_relaxed);
  return ended != 0 && ended < now_ns ? ended : now_ns;
}

/// Removes the idle time of pauses from a stage: the time that its threads have counted in excess of the wall time.
/// Removes blocked time first, because the slots are full during a pause.
MILLRACE_INLINE void subtract_trainer_pauses(stage_statistics& s, std::uint64_t wall_ns,
                                             std::uint64_t paused_ns) noexcept {
  std::uint64_t idle = s.busy_ns + s.starved_ns + s.blocked_ns;
  saturating_sub(idle, wall_ns * s.concurrency);
  idle = std::min(idle, paused_ns * s.concurrency);
  const std::uint64_t blocked = std::min(s.blocked_ns, idle);
  s.blocked_ns -= blocked;
  saturating_sub(s.starved_ns, idle - blocked);
}

MILLRACE_RARE void trainer_times::add_to(flow_statistics& f, std::uint64_t now_ns) const {
  std::uint64_t paused = paused_ns_.load(std::memory_order_relaxed);
  if (const std::uint64_t since = paused_since_ns_.load(); since != 0 && since < now_ns) paused += now_ns - since;
  f.wall_ns = now_ns - started_ns_ - std::min(paused, now_ns - started_ns_);
  for (stage_statistics& s : f.stages) subtract_trainer_pauses(s, f.wall_ns, paused);
  const std::uint64_t copy_wait = copy_wait_ns_.load(std::memory_order_relaxed);
  stage_statistics step{.name = "step",
                        .kind = stage_kind::step,
                        .busy_ns = step_ns() - std::min(copy_wait, step_ns()),
                        .starved_ns = wait_ns() + copy_wait};
  step.items = f.samples;
  step.service_ns = steps_.snapshot();
  f.stages.push_back(std::move(step));
  f.wait_ns = waits_.snapshot();
  const std::lock_guard lock(mutex_);
  if (batches_ == 0) return;
  const auto n = static_cast<double>(batches_);
  f.queues.push_back(
      {"ready", "batches", static_cast<double>(ready_sum_) / n, static_cast<double>(f.host_slots + f.device_slots)});
  f.queues.push_back({"read ahead", "MB", 1e-6 * static_cast<double>(read_ahead_sum_) / n,
                      1e-6 * static_cast<double>(f.read_ahead_bytes)});
}

MILLRACE_RARE void trainer_times::add_to(timeline& t) const {
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

MILLRACE_INLINE std::vector<delivered_batch> trainer_times::deliveries() const {
  const std::lock_guard lock(mutex_);
  std::vector<delivered_batch> all(deliveries_);
  if (batches_ > stored_batches)
    std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(batches_ % stored_batches), all.end());
  return all;
}

MILLRACE_INLINE void trainer_times::add(std::atomic<std::uint64_t>& counter, std::uint64_t n) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

}}}   // namespace millrace::detail
