// Delivers batches to devices with their own memory, through a ring of device slots.
//
//   host    READY -> IN_USE(until its copy is done) -> FREE
//   device  RELEASED(events) -> READY(its copy is queued) -> IN_USE(lease) -> RELEASED(events)
//
// A stager copies host slots into the ring; a second thread waits for the copies.
// A copy into a released device slot waits on the device for the release events. A batch is handed out as soon as its
// copy is queued; the user's stream waits for the copy. So neither the trainer nor the stager waits for the step. The
// thread that frees host slots waits for copies, and thereby for the steps before them. So it does nothing else. All
// slots, events and the stream are made at the start. With `fixed_slots`, batch n lies in slot n % device_slots, at
// the same address every time.
// Errors: an error of the device takes the position of the next batch. From then on nothing is copied. A host slot
// whose copy may still run is not freed. take() throws if no further batch can come. Threads, Lifetime: as
// deliver/batch_output.hpp.
#pragma once

#include <millrace/deliver/batch_output.hpp>
#include <millrace/deliver/device_gaps.hpp>
#include <millrace/measure/copy_times.hpp>
#include <millrace/measure/trace_range.hpp>
#include <millrace/stages/to_device.hpp>
#include <millrace/sync/fifo.hpp>

#include <array>
#include <optional>
#include <thread>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Hands out batches through a ring of device slots.
class device_batch_output final : public batch_output {
 public:
  struct options {
    std::size_t device_slots = 3;
    stream_view stream{};       ///< stream of the training step
    bool threaded = true;       ///< false: advance() makes the copies
    bool fixed_slots = false;   ///< batch n lies in slot n % device_slots
  };

  device_batch_output(std::shared_ptr<device_backend> backend, options o)
      : batch_output(std::move(backend)), options_(o), ring_(o.device_slots) {}
  ~device_batch_output() override {
    for (auto& s : ring_) {
      if (!s.data) continue;
      // The work on the device that uses the batch has to be done before its memory is freed.
      for (std::size_t i = 0; i < s.release_events; ++i) try_to_wait(*s.released[i]);
      backend_->free_device(s.data);
    }
  }

  void allocate(const memory& wanted) override {
    allocate_host(wanted, false);
    batch_bytes_ = wanted.batch_bytes;
    for (auto& s : ring_) {
      s.copied = backend_->make_event();
      for (auto& event : s.released) event = backend_->make_event();
      s.data = backend_->allocate_device(batch_bytes_);
      if (wanted.keys) s.keys = batch_keys(wanted.rows);
    }
    gaps_.allocate(backend_, 4 * ring_.size());
  }

  batch_ring::taken take(std::uint64_t batch, bool stop_at_epoch) override {
    if (stop_at_epoch && host_.starts_epoch(batch)) {
      gaps_.pause();
      return {batch_ring::outcome::epoch_end, {}};
    }
    device_slot* found = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto at = ready_slot_locked(batch);
      if (at < ring_.size()) found = &ring_[at];
      if (!found && batch >= copied_until_ && ended_) return {end_reason_, {}};
      if (!found && lost_) std::rethrow_exception(lost_);
      if (!found) return {batch_ring::outcome::not_yet, {}};
    }
    backend_->check_stream(options_.stream);   // first of all, so that the call may be repeated
    {
      const std::lock_guard lock(mutex_);
      found->now = state::in_use;
      if (!found->meta.error) found->meta.error = lost_;
    }
    try {
      if (!found->meta.error) {
        backend_->stream_waits_for(options_.stream, *found->copied);
        gaps_.taken(options_.stream);
      }
    } catch (...) {
      found->meta.error = lose_device();
    }
    return {batch_ring::outcome::ready, found->meta};
  }

  bool can_take(std::uint64_t batch, bool stop_at_epoch) const override {
    if (stop_at_epoch && host_.starts_epoch(batch)) return true;
    const std::lock_guard lock(mutex_);
    return ready_slot_locked(batch) < ring_.size() || (batch >= copied_until_ && ended_) || lost_;
  }

  void used_on(std::size_t slot, stream_view stream) override {
    backend_->check_stream(stream);
    backend_->stream_waits_for(stream, *ring_[slot].copied);
  }

  void release(std::size_t slot, std::span<const stream_view> used_on) noexcept override {
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

  bool waits_for_lease(std::uint64_t batch) const override {
    const std::lock_guard lock(mutex_);
    if (options_.fixed_slots) return batch >= copied_until_ && ring_[batch % ring_.size()].now == state::in_use;
    return leased_locked() == ring_.size();
  }
  std::size_t lease_slots() const noexcept override { return ring_.size(); }
  std::size_t leased() const noexcept override {
    const std::lock_guard lock(mutex_);
    return leased_locked();
  }

  std::size_t ready() const override {
    const std::lock_guard lock(mutex_);
    return host_.ready() + static_cast<std::size_t>(std::count_if(
                               ring_.begin(), ring_.end(), [](const auto& s) { return s.now == state::ready; }));
  }

  std::uint64_t arrived_ns(std::uint64_t batch) const noexcept override { return times_.arrived_ns(batch); }
  void add_to(flow_figures& f, std::uint64_t now_ns) const override {
    times_.add_to(f, now_ns);
    gaps_.add_to(f);
  }
  void add_to(timeline& t, std::uint64_t start_ns) const override {
    t.add_spans("copies", "copy", times_.spans(), start_ns);
  }
  void start() override {
    times_.start();
    if (!options_.threaded) return;
    stager_ = std::thread([this] { queue_copies(); });
    waiter_ = std::thread([this] { wait_for_copies(); });
  }
  bool advance() override { return submit_next() || finish_oldest(); }
  void stop() noexcept override {
    stopped_.store(true);
    bell().ring();
  }
  void join() noexcept override {
    if (stager_.joinable()) stager_.join();
    if (waiter_.joinable()) waiter_.join();
    // Copies in flight still read from host slots.
    while (finish_oldest()) {
    }
  }

 private:
  enum class state { released, ready, in_use };
  struct device_slot {
    void* data = nullptr;
    std::unique_ptr<device_event> copied;
    std::array<std::unique_ptr<device_event>, max_streams> released;   // one for each stream of a lease
    std::size_t release_events = 0;
    std::uint64_t released_as = 0;   // ordinal of the release
    state now = state::released;
    ready_batch meta{};
    batch_keys keys{};   // keys of this batch, because its host slot gets another batch
  };
  struct copy_under_way {
    device_slot* target;
    std::size_t host_slot;
    bool failed;
    std::size_t bytes;
    std::uint64_t queued_ns, batch;
  };

  /// Oldest first. One thread adds, another removes.
  class copies_under_way {
   public:
    void push_back(const copy_under_way& copy) {
      const std::lock_guard lock(mutex_);
      all_.push(copy_under_way(copy));
    }
    std::optional<copy_under_way> oldest() const {
      const std::lock_guard lock(mutex_);
      return all_.empty() ? std::nullopt : std::optional(all_[0]);
    }
    void pop_oldest() noexcept {
      const std::lock_guard lock(mutex_);
      static_cast<void>(all_.pop());
    }
    bool any_into(const device_slot& target) const {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = 0; i < all_.size(); ++i)
        if (all_[i].target == &target) return true;
      return false;
    }

   private:
    mutable std::mutex mutex_;
    fifo<copy_under_way> all_;
  };

  /// Queues the copy of the next batch, if the batch is ready and a device slot is free.
  bool submit_next() {
    device_slot* target = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (ended_) return false;
      target = free_slot_locked(ring_);
    }
    if (!target) return false;
    const batch_ring::taken host = host_.take(copied_until_);
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

  void copy(device_slot& target, const ready_batch& from) {
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

  /// Waits for the oldest copy and frees its host slot. Returns false if no copy is in flight.
  bool finish_oldest() noexcept {
    const auto found = in_flight_.oldest();
    if (!found) return false;
    const copy_under_way oldest = *found;
    if (!oldest.failed && try_to_wait(*oldest.target->copied)) free_host_slot(oldest.host_slot);
    // A named variable, because nvcc loses the braces of a call argument within a template.
    const span_ring::span copy{oldest.queued_ns, steady_now_ns(), oldest.batch};
    times_.copied(copy, oldest.bytes);
    gaps_.collect();
    in_flight_.pop_oldest();
    bell().ring();
    return true;
  }

  bool try_to_wait(device_event& event) noexcept {
    try {
      backend_->wait(event);
      return true;
    } catch (...) {
      lose_device();
      return false;
    }
  }

  /// Call it inside a catch block. The first error is the one that the trainer gets.
  std::exception_ptr lose_device() noexcept {
    std::exception_ptr why = located_exception({.stage = "to_device"});
    {
      const std::lock_guard lock(mutex_);
      if (!lost_) lost_ = why;
      why = lost_;
    }
    bell().ring();
    return why;
  }

  /// Returns the slot for the next batch. Among several free slots it takes the one released first, because its step is
  /// most likely over. Its event will be recorded anew, so the wait for its old copy has to be over.
  template <class Ring>
  auto free_slot_locked(Ring& ring) const -> decltype(ring.data()) {
    if (options_.fixed_slots) {
      auto& s = ring[copied_until_ % ring.size()];
      return s.now == state::released && !in_flight_.any_into(s) ? &s : nullptr;
    }
    decltype(ring.data()) found = nullptr;
    for (auto& s : ring)
      if (s.now == state::released && (!found || s.released_as < found->released_as) && !in_flight_.any_into(s))
        found = &s;
    return found;
  }
  std::size_t ready_slot_locked(std::uint64_t batch) const noexcept {
    std::size_t i = 0;
    while (i < ring_.size() && !(ring_[i].now == state::ready && ring_[i].meta.batch == batch)) ++i;
    return i;
  }
  std::size_t leased_locked() const noexcept {
    return static_cast<std::size_t>(
        std::count_if(ring_.begin(), ring_.end(), [](const auto& s) { return s.now == state::in_use; }));
  }

  bool can_submit() const {
    const std::lock_guard lock(mutex_);
    return !ended_ && host_.can_take(copied_until_) && free_slot_locked(ring_);
  }

  void queue_copies() {
    enter_thread("millrace-stager");
    while (!stopped_.load()) {
      if (submit_next()) continue;
      const copy_times::idle idle(times_, host_.can_take(copied_until_));
      bell().wait([&] { return stopped_.load() || can_submit(); });
    }
  }
  void wait_for_copies() {
    enter_thread("millrace-copies");
    while (!stopped_.load()) {
      if (finish_oldest()) continue;
      bell().wait([&] { return stopped_.load() || in_flight_.oldest(); });
    }
  }
  void enter_thread(const char* name) {
    detail::name_worker_thread(name);
    try {
      backend_->enter_thread();
    } catch (...) {
      lose_device();   // the first batch reports it
    }
  }

  const options options_;
  std::size_t batch_bytes_ = 0;
  mutable std::mutex mutex_;
  std::vector<device_slot> ring_;
  std::uint64_t copied_until_ = 0;   // copies of batches below it have been queued
  std::uint64_t releases_ = 0;
  bool ended_ = false;
  batch_ring::outcome end_reason_ = batch_ring::outcome::end;
  std::exception_ptr lost_;   // why the device cannot be used any more
  copies_under_way in_flight_;
  copy_times times_;
  device_gaps gaps_;
  std::atomic<bool> stopped_{false};
  std::thread stager_, waiter_;
};

/// Returns the object that hands out a session's batches, for the device of the options.
inline std::shared_ptr<batch_output> new_batch_output(const to_device_options& o, bool threaded) {
  auto backend = o.device.backend();
  if (auto own = backend->for_one_session()) backend = std::move(own);
  if (backend->leases_host_slots()) return std::make_shared<host_batch_output>(std::move(backend), o.fixed_slots);
  return std::make_shared<device_batch_output>(
      std::move(backend), device_batch_output::options{.device_slots = std::max<std::size_t>(1, o.slots),
                                                    .stream = o.stream,
                                                    .threaded = threaded,
                                                    .fixed_slots = o.fixed_slots});
}

}}}  // namespace millrace::detail
