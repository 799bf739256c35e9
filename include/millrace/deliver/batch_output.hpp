// Delivers finished batches to the trainer (the thread that calls next()) as leases. A lease is the user's ownership
// of a slot (the memory of a batch). sync/batch_ring.hpp describes the states READY, IN_USE and FREE of a slot.
//
//   host_batch_output      host device: the lease is the host slot itself, READY -> IN_USE -> FREE
//   device_batch_output    other devices: a stager (a thread) copies host slots into a ring of device slots
//
// Threads: one trainer calls take(). Any thread may call release(); slots may be released in any order.
// Lifetime: leases share ownership of the batch_output, which owns all slot memory. Therefore a batch may outlive its
// session.
// Errors: documented in the comments of the members.
#pragma once

#include <millrace/device/device.hpp>
#include <millrace/sync/batch_ring.hpp>
#include <millrace/work/schedule/segment.hpp>

#include <optional>
#include <span>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Delivers batches and frees their slots.
class batch_output : public pipeline_node {
 public:
  /// Maximum number of streams that may use one batch.
  static constexpr std::size_t max_streams = 8;

  explicit batch_output(std::shared_ptr<device_backend> backend);
  batch_output(const batch_output&) = delete;
  batch_output& operator=(const batch_output&) = delete;
  ~batch_output() override;

  /// The memory that a session needs.
  struct memory {
    std::size_t host_slots = 0, rows = 0, batch_bytes = 0;
    bool keys = false;   ///< whether each slot has space for the keys of its rows
  };
  /// Allocates all slots. Called when the size of a batch is known.
  virtual void allocate(const memory& needed) = 0;
  /// Returns the batch with this number, or the reason why no batch is available. `data` of the result is the address
  /// on the device. If `stop_at_epoch` is set, the function does not return the first batch of an epoch.
  virtual batch_ring::take_result take(std::uint64_t batch, bool stop_at_epoch) = 0;
  /// Returns whether take() would return something other than not_yet. Never calls the device.
  virtual bool can_take(std::uint64_t batch, bool stop_at_epoch) const = 0;
  /// Lets another stream wait for the arrival of a leased batch.
  virtual void used_on(std::size_t slot, stream_view stream) = 0;
  /// Frees a leased slot after all streams in `used_on` have completed their work on the slot.
  virtual void release(std::size_t slot, std::span<const stream_view> used_on) noexcept = 0;
  /// Returns whether batch number `batch`, the next batch, cannot arrive until a lease is released.
  virtual bool waits_for_lease(std::uint64_t batch) const = 0;
  /// Returns the number of slots that can be leased.
  virtual std::size_t lease_slots() const noexcept = 0;
  /// Returns the number of leased slots.
  virtual std::size_t leased() const noexcept = 0;
  /// Returns the state of the slots as text.
  std::string waits(std::uint64_t) const override;
  /// Returns the time at which the copy of a delivered batch completed; 0 if unknown.
  virtual std::uint64_t arrived_ns(std::uint64_t) const noexcept { return 0; }
  /// Returns the number of batches that are ready, on the host or on the device.
  virtual std::size_t ready() const { return host_.ready(); }

  /// Returns the doorbell that is rung when the result of can_take() may have changed.
  doorbell& bell() noexcept { return host_.bell(); }
  /// Returns the ring of host slots.
  batch_ring& host_slots() noexcept { return host_; }
  /// Returns the device on which the batches are delivered.
  device_backend& backend() const noexcept { return *backend_; }

  /// Returns whether this process was forked from the process that created the slots.
  bool is_forked() const noexcept;

  /// Sets the object that assigns freed host slots to new batches; null after the workers have stopped.
  void set_listener(space_listener* listener) noexcept;

 protected:
  void allocate_host(const memory& needed, bool fixed);
  void free_host_slot(std::size_t slot) noexcept;

  batch_ring host_;
  const std::shared_ptr<device_backend> backend_;

 private:
  const int process_;
  std::vector<void*> host_memory_;
  std::mutex listener_mutex_;
  space_listener* listener_ = nullptr;
};

/// Throws the setup_error for a caller that has leased all slots. If `fixed` is set, the caller has leased the slot
/// that batch `*fixed` needs.
[[noreturn]] void throw_all_leased(const batch_output& from, std::optional<std::uint64_t> fixed);

/// Delivers batches for devices that use them in host memory.
class host_batch_output final : public batch_output {
 public:
  host_batch_output(std::shared_ptr<device_backend> backend, bool fixed_slots);

  void allocate(const memory& needed) override { allocate_host(needed, fixed_slots_); }

  batch_ring::take_result take(std::uint64_t batch, bool stop_at_epoch) override {
    return host_.take(batch, stop_at_epoch);
  }
  bool can_take(std::uint64_t batch, bool stop_at_epoch) const override;
  void used_on(std::size_t, stream_view) override {}
  void release(std::size_t slot, std::span<const stream_view>) noexcept override { free_host_slot(slot); }
  bool waits_for_lease(std::uint64_t batch) const override { return host_.waits_for_slot(batch); }
  std::size_t lease_slots() const noexcept override { return host_.count(); }
  std::size_t leased() const noexcept override { return host_.in_use(); }

  void start() override {}
  bool advance() override { return false; }
  void stop() noexcept override {}
  void join() noexcept override {}

 private:
  const bool fixed_slots_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/deliver/impl/batch_output.inl>
#endif
