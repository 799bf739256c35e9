// Definitions for device_batch_output.hpp.
#pragma once

#include <millrace/base/aligned_allocator.hpp>
#include <millrace/deliver/device_batch_output.hpp>

#include <millrace/measure/meters/trace_range.hpp>
#include <millrace/sync/start_thread.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE device_batch_output::device_batch_output(std::shared_ptr<device_backend> backend, options o)
    : batch_output(std::move(backend)), options_(o), ring_(o.device_slots) {}

MILLRACE_RARE device_batch_output::~device_batch_output() {
  for (auto& s : ring_) {
    if (!s.data) continue;
    // The work on the device that uses the batch must be complete before the memory of the batch is freed.
    for (std::size_t i = 0; i < s.release_events; ++i) try_to_wait(*s.released[i]);
    backend_->free_device(s.data);
  }
}

MILLRACE_RARE void device_batch_output::allocate(const memory& needed) {
  allocate_host(needed, false);
  batch_bytes_ = needed.batch_bytes;
  for (auto& s : ring_) {
    s.copied = backend_->make_event();
    for (auto& event : s.released) event = backend_->make_event();
    s.data = backend_->allocate_device(batch_bytes_);
    if (needed.keys) s.keys = batch_keys(needed.rows);
  }
  backend_->check_owner(options_.stream, *ring_[0].released[0]);
  in_flight_.reserve(ring_.size());   // recording a running copy must not fail
  gaps_.allocate(backend_, options_.stream, 4 * ring_.size());
}

MILLRACE_INLINE batch_ring::take_result device_batch_output::take(std::uint64_t batch, bool stop_at_epoch) {
  if (stop_at_epoch && host_.starts_epoch(batch)) {
    gaps_.pause();
    return {batch_ring::outcome::epoch_end, {}};
  }
  device_slot* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto at = ready_slot_locked(batch);
    if (at < ring_.size()) slot = &ring_[at];
    if (!slot && batch >= copied_until_ && ended_) return {end_reason_, {}};
    if (!slot && lost_) std::rethrow_exception(lost_);
    if (!slot) return {batch_ring::outcome::not_yet, {}};
  }
  backend_->check_stream(options_.stream);   // may throw; the caller can then repeat the call
  {
    const std::lock_guard lock(mutex_);
    slot->now = state::in_use;
    if (!slot->meta.error) slot->meta.error = lost_;
  }
  try {
    if (!slot->meta.error) {
      backend_->stream_waits_for(options_.stream, *slot->copied);
      gaps_.acquired(options_.stream);
    }
  } catch (...) {
    slot->meta.error = lose_device();
  }
  return {batch_ring::outcome::ready, slot->meta};
}

MILLRACE_INLINE bool device_batch_output::can_take(std::uint64_t batch, bool stop_at_epoch) const {
  if (stop_at_epoch && host_.starts_epoch(batch)) return true;
  const std::lock_guard lock(mutex_);
  return ready_slot_locked(batch) < ring_.size() || (batch >= copied_until_ && ended_) || lost_;
}

MILLRACE_INLINE void device_batch_output::used_on(std::size_t slot, stream_view stream) {
  backend_->check_stream(stream);
  backend_->check_owner(stream, *ring_[slot].released[0]);   // the last record of this event is complete
  backend_->stream_waits_for(stream, *ring_[slot].copied);
}

MILLRACE_INLINE void device_batch_output::release(std::size_t slot, std::span<const stream_view> used_on) noexcept {
  device_slot& s = ring_[slot];
  try {
    if (!s.meta.error) {
      for (std::size_t i = 0; i < used_on.size(); ++i) backend_->record(*s.released[i], used_on[i]);
      gaps_.released(options_.stream);
    }
  } catch (...) {
    lose_device();
  }
  {
    const std::lock_guard lock(mutex_);
    if (!s.meta.error) s.release_events = used_on.size();
    s.released_as = ++releases_;
    s.now = state::released;
  }
  bell().ring();
}

MILLRACE_INLINE bool device_batch_output::waits_for_lease(std::uint64_t batch) const {
  const std::lock_guard lock(mutex_);
  if (options_.fixed_slots) return batch >= copied_until_ && ring_[batch % ring_.size()].now == state::in_use;
  return leased_locked() == ring_.size();
}

MILLRACE_INLINE std::size_t device_batch_output::leased() const noexcept {
  const std::lock_guard lock(mutex_);
  return leased_locked();
}

MILLRACE_INLINE std::size_t device_batch_output::ready() const {
  const std::lock_guard lock(mutex_);
  return host_.ready() + static_cast<std::size_t>(std::count_if(ring_.begin(), ring_.end(),
                                                                [](const auto& s) { return s.now == state::ready; }));
}

MILLRACE_RARE void device_batch_output::add_to(flow_statistics& f, std::uint64_t now_ns) const {
  times_.add_to(f, now_ns);
  gaps_.add_to(f);
}

MILLRACE_RARE void device_batch_output::add_to(timeline& t, std::uint64_t start_ns) const {
  add_spans(t, "copies", "copy", times_.spans(), start_ns);
}

MILLRACE_RARE void device_batch_output::start() {
  times_.start();
  if (!options_.threaded) return;
  stager_ = start_thread([this] { queue_copies(); });
  waiter_ = start_thread([this] { wait_for_copies(); });
}

MILLRACE_RARE void device_batch_output::stop() noexcept {
  stopped_.store(true);
  bell().ring();
}

MILLRACE_RARE void device_batch_output::join() noexcept {
  if (stager_.joinable()) stager_.join();
  if (waiter_.joinable()) waiter_.join();
  // Copies in flight still read from host slots.
  while (finish_oldest()) {}
}

MILLRACE_INLINE void device_batch_output::copies_under_way::push_back(const copy_under_way& copy) {
  const std::lock_guard lock(mutex_);
  all_.push(copy_under_way(copy));
}

MILLRACE_INLINE std::optional<device_batch_output::copy_under_way> device_batch_output::copies_under_way::oldest()
    const {
  const std::lock_guard lock(mutex_);
  return all_.empty() ? std::nullopt : std::optional(all_[0]);
}

MILLRACE_INLINE void device_batch_output::copies_under_way::pop_oldest() noexcept {
  const std::lock_guard lock(mutex_);
  static_cast<void>(all_.pop());
}

MILLRACE_INLINE bool device_batch_output::copies_under_way::any_into(const device_slot& target) const {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (all_[i].target == &target) return true;
  return false;
}

MILLRACE_INLINE bool device_batch_output::submit_next() {
  device_slot* target = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return false;
    target = free_slot_locked(ring_);
  }
  if (!target) return false;
  const batch_ring::take_result host = host_.take(copied_until_);
  if (host.what == batch_ring::outcome::not_yet) return false;
  if (host.what != batch_ring::outcome::ready) {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      end_reason_ = host.what;
    }
    bell().ring();
    return true;
  }
  copy(*target, host.batch);
  return true;
}

MILLRACE_INLINE void device_batch_output::copy(device_slot& target, const ready_batch& from) {
  const trace_range copying("h2d", from.batch);
  target.meta = from;
  target.meta.slot = static_cast<std::size_t>(&target - ring_.data());
  target.meta.data = static_cast<std::byte*>(target.data);
  host_.swap_keys(from.slot, target.keys);
  target.meta.keys = target.keys.texts();
  {
    const std::lock_guard lock(mutex_);
    if (!target.meta.error) target.meta.error = lost_;
  }
  const std::uint64_t queued_ns = steady_now_ns();
  const std::size_t bytes = std::min(batch_bytes_, from.extent.used_bytes);
  bool failed = false;
  try {
    if (!target.meta.error) {
      for (std::size_t i = 0; i < target.release_events; ++i) backend_->copy_waits_for(*target.released[i]);
      backend_->copy_to_device(target.data, from.data, bytes);
      backend_->record_copy(*target.copied);
    }
  } catch (...) {
    target.meta.error = lose_device();
    failed = true;
  }
  in_flight_.push_back({&target, from.slot, failed, bytes, queued_ns, from.batch});
  {
    const std::lock_guard lock(mutex_);
    target.now = state::ready;
    ++copied_until_;
  }
  bell().ring();
}

MILLRACE_INLINE bool device_batch_output::finish_oldest() noexcept {
  const auto first = in_flight_.oldest();
  if (!first) return false;
  const copy_under_way oldest = *first;
  if (!oldest.failed && try_to_wait(*oldest.target->copied)) free_host_slot(oldest.host_slot);
  // A named variable, because nvcc loses the braces of a call argument within a template.
  const span_ring::span copy{oldest.queued_ns, steady_now_ns(), oldest.batch};
  times_.copied(copy, oldest.bytes);
  gaps_.collect();
  in_flight_.pop_oldest();
  bell().ring();
  return true;
}

MILLRACE_INLINE bool device_batch_output::try_to_wait(device_event& event) noexcept {
  try {
    backend_->wait(event);
    return true;
  } catch (...) {
    lose_device();
    return false;
  }
}

MILLRACE_RARE std::exception_ptr device_batch_output::lose_device() noexcept {
  std::exception_ptr why = error_located_by([] { return error_location{.stage = "to_device"}; });
  {
    const std::lock_guard lock(mutex_);
    if (!lost_) lost_ = why;
    why = lost_;
  }
  bell().ring();
  return why;
}

MILLRACE_INLINE std::size_t device_batch_output::ready_slot_locked(std::uint64_t batch) const noexcept {
  std::size_t i = 0;
  while (i < ring_.size() && !(ring_[i].now == state::ready && ring_[i].meta.batch == batch)) ++i;
  return i;
}

MILLRACE_INLINE std::size_t device_batch_output::leased_locked() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(ring_.begin(), ring_.end(), [](const auto& s) { return s.now == state::in_use; }));
}

MILLRACE_INLINE bool device_batch_output::can_submit() const {
  const std::lock_guard lock(mutex_);
  return !ended_ && host_.can_take(copied_until_) && free_slot_locked(ring_);
}

MILLRACE_INLINE void device_batch_output::queue_copies() {
  enter_thread("millrace-stager");
  while (!stopped_.load()) {
    if (submit_next()) continue;
    const copy_times::idle idle(times_, host_.can_take(copied_until_));
    bell().wait([&] { return stopped_.load() || can_submit(); });
  }
}

MILLRACE_INLINE void device_batch_output::wait_for_copies() {
  enter_thread("millrace-copies");
  while (!stopped_.load()) {
    if (finish_oldest()) continue;
    bell().wait([&] { return stopped_.load() || in_flight_.oldest(); });
  }
}

MILLRACE_RARE void device_batch_output::enter_thread(const char* name) {
  name_worker_thread(name);
  try {
    backend_->enter_thread();
  } catch (...) {
    lose_device();   // the first batch reports the error
  }
}

MILLRACE_RARE std::shared_ptr<batch_output> new_batch_output(const to_device_options& o, bool threaded) {
  auto backend = o.device.backend();
  if (auto own = backend->for_one_session()) backend = std::move(own);
  if (backend->leases_host_slots()) return make_shared_object<host_batch_output>(std::move(backend), o.fixed_slots);
  return make_aligned_shared<device_batch_output>(
      std::move(backend), device_batch_output::options{.device_slots = std::max<std::size_t>(1, o.slots),
                                                       .stream = o.stream,
                                                       .threaded = threaded,
                                                       .fixed_slots = o.fixed_slots});
}

}}}   // namespace millrace::detail
