// Delivers batches to devices with their own memory, through a ring of device slots (a slot is the memory of a batch).
//
//   host slot    READY -> IN_USE (until it is copied) -> FREE
//   device slot  RELEASED (with events) -> READY (the copy is queued) -> IN_USE (leased by the user) -> RELEASED
//
// The stager (a thread) queues copies of host slots into the ring. A second thread waits for the end of each copy, and
// frees the host slot. A batch is delivered as soon as its copy is queued, and the user's stream waits for the copy.
// The release of a device slot records an event in each stream that used the slot. The next copy into the slot waits on
// the device for these events. Therefore neither the trainer nor the stager waits for a training step. All slots, all
// events and the copy stream are created at the start. With `fixed_slots`, batch n uses slot n % device_slots.
// Therefore batch n + device_slots has the address of batch n.
// Errors: after an error of the device, nothing more is copied. A request for a batch that is in the ring returns the
// batch, with the error in ready_batch::error. A request for any other batch throws the error. A host slot whose copy
// may still be running is not freed.
// Threads and lifetime: as in deliver/batch_lease.hpp.
#pragma once

#include <millrace/deliver/batch_lease.hpp>
#include <millrace/device/device.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/measure/meters/copy_times.hpp>
#include <millrace/measure/values/flow_statistics.hpp>
#include <millrace/stages/to_device.hpp>
#include <millrace/sync/queues.hpp>

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Measures the time during which a stream of a device had no batch. Uses events of the device instead of the host
// clock, because the trainer may queue work ahead of the device. A gap is the time from the mark of released() to the
// next mark of acquired() in the same stream. While all pairs of events are in use, the stream still has queued work.
// During this time it has no gap, and no events are recorded. The time between two epochs of a training loop is not a
// gap.
// Errors: exceptions from recording an event are not caught. If the clock cannot be read, the measurement ends.
// Threads: any thread may call released(), acquired(), pause(), collect() and add_to().

/// Measures the gaps of one stream.
class device_gaps {
 public:
  /// Creates `max_under_way` pairs of events. Without a device clock for this stream, nothing is measured.
  MILLRACE_RARE void allocate(std::shared_ptr<device_backend> backend, stream_view stream, std::size_t max_under_way) {
    backend_ = std::move(backend);
    for (std::size_t i = 0; i < max_under_way; ++i) {
      pair p{backend_->make_timed_event(stream), backend_->make_timed_event(stream)};
      if (!p.from || !p.to) return;
      ring_.push_back(std::move(p));
    }
    counts_ = !ring_.empty();
  }

  /// Marks the end of the stream's work on a batch.
  void released(stream_view stream) {
    const std::lock_guard lock(mutex_);
    if (!counts_ || next_ - first_ == ring_.size()) return;
    backend_->record(*at(next_).from, stream);
    begun_ = true;
  }
  /// Marks the end of the stream's wait for the next batch.
  void acquired(stream_view stream) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(begun_, false)) return;
    backend_->record(*at(next_).to, stream);
    ++next_;
  }
  /// Discards the current gap. Called at the end of an epoch.
  void pause() noexcept {
    const std::lock_guard lock(mutex_);
    begun_ = false;
  }

  /// Adds all completed gaps to the sum. Does not wait for the device.
  void collect() const noexcept {
    const std::lock_guard lock(mutex_);
    try {
      for (; first_ < next_; ++first_) {
        const std::optional<std::uint64_t> gap = backend_->elapsed_ns(*at(first_).from, *at(first_).to);
        if (!gap) return;
        sum_ns_ += *gap;
      }
    } catch (...) {
      counts_ = false;
      first_ = next_;
    }
  }
  /// Sets device_gap_ns if gaps are measured.
  void add_to(flow_statistics& f) const {
    collect();
    const std::lock_guard lock(mutex_);
    if (counts_) f.device_gap_ns = sum_ns_;
  }

 private:
  struct pair {
    std::unique_ptr<device_event> from, to;
  };
  const pair& at(std::uint64_t number) const noexcept { return ring_[static_cast<std::size_t>(number % ring_.size())]; }

  std::shared_ptr<device_backend> backend_;
  mutable std::mutex mutex_;
  std::vector<pair> ring_;
  mutable std::uint64_t first_ = 0;   // the first pair that was not collected yet
  std::uint64_t next_ = 0;
  bool begun_ = false;
  mutable bool counts_ = false;
  mutable std::uint64_t sum_ns_ = 0;
};

/// Delivers batches through a ring of device slots.
class device_batch_output final : public batch_output {
 public:
  struct options {
    std::size_t device_slots = 3;
    stream_view stream{};       ///< stream of the training step
    bool threaded = true;       ///< if false, advance() performs the copies
    bool fixed_slots = false;   ///< if true, batch n is in slot n % device_slots
  };

  device_batch_output(std::shared_ptr<device_backend> backend, options o);
  ~device_batch_output() override;

  void allocate(const memory& needed) override;

  batch_ring::take_result take(std::uint64_t batch, bool stop_at_epoch) override;

  bool can_take(std::uint64_t batch, bool stop_at_epoch) const override;

  void used_on(std::size_t slot, stream_view stream) override;

  void release(std::size_t slot, std::span<const stream_view> used_on) noexcept override;

  bool waits_for_lease(std::uint64_t batch) const override;
  std::size_t lease_slots() const noexcept override { return ring_.size(); }
  std::size_t leased() const noexcept override;

  std::size_t ready() const override;

  std::uint64_t arrived_ns(std::uint64_t batch) const noexcept override { return times_.arrived_ns(batch); }
  void add_to(flow_statistics& f, std::uint64_t now_ns) const override;
  void add_to(timeline& t, std::uint64_t start_ns) const override;
  void start() override;
  bool advance() override { return submit_next() || finish_oldest(); }
  void stop() noexcept override;
  void join() noexcept override;

 private:
  enum class state { released, ready, in_use };
  struct device_slot {
    void* data = nullptr;
    std::unique_ptr<device_event> copied;
    std::array<std::unique_ptr<device_event>, max_streams> released;   // an event for each stream that uses the batch
    std::size_t release_events = 0;
    std::uint64_t released_as = 0;   // sequence number of the slot's last release
    state now = state::released;
    ready_batch meta{};
    batch_keys keys{};   // keys of the batch, swapped out of the host slot, which the next batch reuses
  };
  struct copy_under_way {
    device_slot* target;
    std::size_t host_slot;
    bool failed;
    std::size_t bytes;
    std::uint64_t queued_ns, batch;
  };

  /// The copies in flight, oldest first. One thread adds entries, another thread removes them.
  class copies_under_way {
   public:
    void reserve(std::size_t copies) { all_.reserve(copies); }
    void push_back(const copy_under_way& copy);
    std::optional<copy_under_way> oldest() const;
    void pop_oldest() noexcept;
    bool any_into(const device_slot& target) const;

   private:
    mutable std::mutex mutex_;
    fifo<copy_under_way> all_;
  };

  /// Queues the copy of the next batch if that batch is ready and a device slot is free.
  bool submit_next();
  void copy(device_slot& target, const ready_batch& from);

  /// Waits for the oldest copy and frees its host slot. Returns false if no copy is in flight.
  bool finish_oldest() noexcept;
  bool try_to_wait(device_event& event) noexcept;

  /// Records the current exception as the error of the device, unless the device has an earlier error. Returns the
  /// recorded error. Call this function only inside a catch block.
  std::exception_ptr lose_device() noexcept;

  /// Returns a free slot, or null. With `fixed_slots`, only the slot of the next batch is considered. Otherwise,
  /// returns the slot that was released first, because its training step is most likely complete.
  template <class Ring>
  auto free_slot_locked(Ring& ring) const -> decltype(ring.data()) {
    if (options_.fixed_slots) {
      auto& s = ring[copied_until_ % ring.size()];
      return s.now == state::released && !in_flight_.any_into(s) ? &s : nullptr;
    }
    decltype(ring.data()) oldest = nullptr;
    for (auto& s : ring)
      if (s.now == state::released && (!oldest || s.released_as < oldest->released_as) && !in_flight_.any_into(s))
        oldest = &s;
    return oldest;
  }
  std::size_t ready_slot_locked(std::uint64_t batch) const noexcept;
  std::size_t leased_locked() const noexcept;
  bool can_submit() const;
  void queue_copies();
  void wait_for_copies();
  void enter_thread(const char* name);

  const options options_;
  std::size_t batch_bytes_ = 0;
  mutable std::mutex mutex_;
  std::vector<device_slot> ring_;
  std::uint64_t copied_until_ = 0;   // the copies of all batches below this number have been queued
  std::uint64_t releases_ = 0;
  bool ended_ = false;
  batch_ring::outcome end_reason_ = batch_ring::outcome::end;
  std::exception_ptr lost_;   // the reason why the device cannot be used
  copies_under_way in_flight_;
  copy_times times_;
  device_gaps gaps_;
  std::atomic<bool> stopped_{false};
  std::thread stager_, waiter_;
};

/// Returns the object that delivers the batches of a session. The device in `o` determines whether the object delivers
/// host slots or copies. If `threaded` is true, separate threads perform the copies. Throws the errors of the device.
std::shared_ptr<batch_output> new_batch_output(const to_device_options& o, bool threaded);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/deliver/impl/device_batch_output.inl>
#endif
