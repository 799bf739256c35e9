// From READY host batches to leases: the last stretch, where a batch changes hands from the workers to the trainer.
//
//   host device:    the lease is the host slot itself                 READY -> IN_USE -> FREE
//   other devices:  a stager thread copies host slots into a ring of device slots
//                   host    READY -> IN_FLIGHT(copy event) -> FREE
//                   device  COPYING -> READY -> IN_USE(lease) -> RELEASED(events) -> COPYING
//
// A copy into a released device slot waits for the release events on the device; a batch is handed out as soon as its
// copy is queued, and the user's stream waits for it. So neither the trainer nor the stager waits for the step.
// Threads: take() by one trainer; release() from any thread, in any order. Lifetime: leases share the delivery, which
// owns all slot memory, so a batch may outlive its session.
#pragma once

#include <millrace/device/device.hpp>
#include <millrace/run/segment.hpp>
#include <millrace/sync/slots.hpp>
#include <millrace/sync/trace_range.hpp>

#include <deque>
#include <span>
#include <thread>

namespace millrace::inline MILLRACE_ABI {

class delivery : public component {
 public:
  explicit delivery(std::shared_ptr<device_backend> backend) : backend_(std::move(backend)) {}
  delivery(const delivery&) = delete;
  delivery& operator=(const delivery&) = delete;
  ~delivery() override {
    for (void* memory : host_memory_) backend_->free_host(memory);
  }

  /// Allocates every slot, once the size of a batch is known.
  virtual void allocate(std::size_t host_slots, std::size_t rows, std::size_t batch_bytes) {
    slots::options o{.rows = rows, .memory = {}};
    for (std::size_t i = 0; i < host_slots; ++i) {
      host_memory_.push_back(backend_->allocate_host(batch_bytes));
      o.memory.push_back(static_cast<std::byte*>(host_memory_.back()));
    }
    host_.start(o);
  }

  /// The batch with that number, if it can be handed out; `data` is where the device finds it.
  virtual slots::taken take(std::uint64_t batch, bool stop_at_epoch) = 0;
  virtual void release(std::size_t slot, std::span<const stream_view> used_on) noexcept = 0;
  /// All slots that could hold a further batch are leased.
  virtual bool all_leased() const noexcept = 0;

  doorbell& bell() noexcept { return host_.bell(); }
  slots& host_slots() noexcept { return host_; }
  const device_backend& backend() const noexcept { return *backend_; }

  /// Who opens host slots again when one is freed; null once the workers are gone.
  void set_listener(room_listener* listener) noexcept {
    const std::lock_guard lock(listener_mutex_);
    listener_ = listener;
  }

 protected:
  void free_host_slot(std::size_t slot) noexcept {
    host_.free(slot);
    const std::lock_guard lock(listener_mutex_);
    if (listener_) listener_->room_freed();
  }

  slots host_;
  const std::shared_ptr<device_backend> backend_;

 private:
  std::vector<void*> host_memory_;
  std::mutex listener_mutex_;
  room_listener* listener_ = nullptr;
};

/// For devices that use batches where they were written.
class host_delivery final : public delivery {
 public:
  using delivery::delivery;

  slots::taken take(std::uint64_t batch, bool stop_at_epoch) override { return host_.take(batch, stop_at_epoch); }
  void release(std::size_t slot, std::span<const stream_view>) noexcept override { free_host_slot(slot); }
  bool all_leased() const noexcept override { return host_.in_use() == host_.count(); }

  void start() override {}
  bool advance() override { return false; }
  void stop() noexcept override {}
  void join() noexcept override {}
};

/// For devices with memory of their own.
class copying_delivery final : public delivery {
 public:
  struct options {
    std::size_t device_slots = 3;
    stream_view stream{};   ///< of the training step
    bool threaded = true;   ///< false: copies are made by advance()
  };

  copying_delivery(std::shared_ptr<device_backend> backend, options o)
      : delivery(std::move(backend)), options_(o), ring_(o.device_slots) {}
  ~copying_delivery() override {
    for (auto& s : ring_)
      if (s.data) backend_->free_device(s.data);
  }

  void allocate(std::size_t host_slots, std::size_t rows, std::size_t batch_bytes) override {
    delivery::allocate(host_slots, rows, batch_bytes);
    batch_bytes_ = batch_bytes;
    for (auto& s : ring_) {
      s.data = backend_->allocate_device(batch_bytes);
      s.copied = backend_->make_event();
      s.released.push_back(backend_->make_event());
    }
  }

  slots::taken take(std::uint64_t batch, bool stop_at_epoch) override {
    if (stop_at_epoch && host_.starts_epoch(batch)) return {slots::outcome::epoch_end, {}};
    device_slot* found = nullptr;
    {
      const std::lock_guard lock(mutex_);
      for (auto& s : ring_)
        if (s.now == state::ready && s.meta.batch == batch) found = &s;
      if (!found) return {batch >= copied_until_ && ended_ ? end_reason_ : slots::outcome::not_yet, {}};
      found->now = state::in_use;
    }
    backend_->stream_waits_for(options_.stream, *found->copied);
    return {slots::outcome::ready, found->meta};
  }

  void release(std::size_t slot, std::span<const stream_view> used_on) noexcept override {
    device_slot& s = ring_[slot];
    try {
      while (s.released.size() < used_on.size()) s.released.push_back(backend_->make_event());
      for (std::size_t i = 0; i < used_on.size(); ++i) backend_->record(*s.released[i], used_on[i]);
    } catch (...) {
      // The device is lost; the slot is not, and whoever uses the device next is told by it.
    }
    {
      const std::lock_guard lock(mutex_);
      s.release_events = used_on.size();
      s.now = state::released;
    }
    bell().ring();
  }

  bool all_leased() const noexcept override {
    const std::lock_guard lock(mutex_);
    for (const auto& s : ring_)
      if (s.now != state::in_use) return false;
    return true;
  }

  void start() override {
    if (options_.threaded) thread_ = std::thread([this] { work(); });
  }
  bool advance() override { return submit_next() || finish_oldest(); }
  void stop() noexcept override {
    stopped_.store(true);
    bell().ring();
  }
  void join() noexcept override {
    if (thread_.joinable()) thread_.join();
    // The copies that are under way still read from host slots.
    while (finish_oldest()) {
    }
  }

 private:
  enum class state { released, copying, ready, in_use };
  struct device_slot {
    void* data = nullptr;
    std::unique_ptr<device_event> copied;
    std::vector<std::unique_ptr<device_event>> released;   // one for each stream that a lease was used on
    std::size_t release_events = 0;
    state now = state::released;
    ready_batch meta{};
  };
  struct copy_under_way {
    device_slot* target;
    std::size_t host_slot;
  };

  /// Queues the next batch's copy, if it is ready and there is a device slot for it.
  bool submit_next() {
    device_slot* target = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (ended_) return false;
      for (auto& s : ring_)
        if (s.now == state::released) target = &s;
    }
    if (!target) return false;
    // Its event is about to be recorded anew: whoever waits for the old copy has to be done with it.
    while (in_flight(*target)) finish_oldest();
    const slots::taken host = host_.take(copied_until_);
    if (host.what == slots::outcome::not_yet) return false;
    if (host.what != slots::outcome::ready) {
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
    try {
      for (std::size_t i = 0; i < target.release_events; ++i) backend_->copy_waits_for(*target.released[i]);
      if (!from.error) backend_->copy_to_device(target.data, from.data, batch_bytes_);
      backend_->record_copy(*target.copied);
    } catch (...) {
      target.meta.error = located_exception({.stage = "to_device"});
    }
    in_flight_.push_back({&target, from.slot});
    {
      const std::lock_guard lock(mutex_);
      target.now = state::ready;
      ++copied_until_;
    }
    bell().ring();
  }

  /// Waits for the oldest copy and frees its host slot; false if none is under way.
  bool finish_oldest() noexcept {
    if (in_flight_.empty()) return false;
    const copy_under_way oldest = in_flight_.front();
    in_flight_.pop_front();
    try {
      backend_->wait(*oldest.target->copied);
    } catch (...) {
      // The next call on this device reports it to the trainer.
    }
    free_host_slot(oldest.host_slot);
    return true;
  }

  bool in_flight(const device_slot& target) const noexcept {
    return std::any_of(in_flight_.begin(), in_flight_.end(), [&](const auto& c) { return c.target == &target; });
  }

  bool can_submit() const {
    const std::lock_guard lock(mutex_);
    return !ended_ && host_.can_take(copied_until_) &&
           std::any_of(ring_.begin(), ring_.end(), [](const auto& s) { return s.now == state::released; });
  }

  void work() {
    detail::name_worker_thread("millrace-stager");
    backend_->enter_thread();
    while (!stopped_.load()) {
      if (submit_next() || finish_oldest()) continue;
      bell().wait([&] { return stopped_.load() || can_submit(); });
    }
  }

  const options options_;
  std::size_t batch_bytes_ = 0;
  mutable std::mutex mutex_;
  std::vector<device_slot> ring_;
  std::uint64_t copied_until_ = 0;   // batches below have been queued
  bool ended_ = false;
  slots::outcome end_reason_ = slots::outcome::end;
  std::deque<copy_under_way> in_flight_;   // of the stager only
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace millrace::inline MILLRACE_ABI
