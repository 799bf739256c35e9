// From READY host batches to leases: the last stretch, where a batch changes hands from the workers to the trainer.
//
//   host device:    the lease is the host slot itself, READY -> IN_USE -> FREE: host_batch_output
//   other devices:  a stager thread copies host slots into a ring of device slots: deliver/device_batch_output.hpp
//
// Threads: take() by one trainer; release() from any thread, in any order. Lifetime: leases share the delivery, which
// owns all slot memory, so a batch may outlive its session.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/device/device.hpp>
#include <millrace/sync/batch_ring.hpp>
#include <millrace/work/segment.hpp>

#include <optional>
#include <span>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

class batch_output : public pipeline_node {
 public:
  /// That one batch may be used on.
  static constexpr std::size_t most_streams = 8;

  explicit batch_output(std::shared_ptr<device_backend> backend) : backend_(std::move(backend)) {}
  batch_output(const batch_output&) = delete;
  batch_output& operator=(const batch_output&) = delete;
  ~batch_output() override {
    for (void* memory : host_memory_) backend_->free_host(memory);
  }

  struct memory {
    std::size_t host_slots = 0, rows = 0, batch_bytes = 0;
    bool keys = false;   ///< each slot has room for its rows' keys
  };
  /// Allocates every slot, once the size of a batch is known.
  virtual void allocate(const memory& wanted) = 0;
  /// The batch with that number, if it can be handed out; `data` is where the device finds it.
  virtual batch_ring::taken take(std::uint64_t batch, bool stop_at_epoch) = 0;
  /// Whether take() would have an answer. Makes no call of the device: it is asked while bell() is waited for.
  virtual bool can_take(std::uint64_t batch, bool stop_at_epoch) const = 0;
  /// One more stream uses a leased batch: it waits for the batch as the trainer's own does.
  virtual void used_on(std::size_t slot, stream_view stream) = 0;
  virtual void release(std::size_t slot, std::span<const stream_view> used_on) noexcept = 0;
  /// Whether that batch, the next to be taken, cannot be made until a lease comes back.
  virtual bool waits_for_lease(std::uint64_t batch) const = 0;
  /// Slots that a lease may hold, and how many do.
  virtual std::size_t lease_slots() const noexcept = 0;
  virtual std::size_t leased() const noexcept = 0;
  std::string waits(std::uint64_t) const override {
    return "slots: " + std::to_string(ready()) + " batches ready, " + std::to_string(leased()) + " of " +
           std::to_string(lease_slots()) + " leased";
  }
  /// When a batch that was handed out while its copy was under way was there, if that is known; else 0.
  virtual std::uint64_t arrived_ns(std::uint64_t) const noexcept { return 0; }
  /// Batches that wait to be taken, on the host or on the device.
  virtual std::size_t ready() const { return host_.ready(); }

  doorbell& bell() noexcept { return host_.bell(); }
  batch_ring& host_slots() noexcept { return host_; }
  device_backend& backend() const noexcept { return *backend_; }

  /// Who opens host slots again when one is freed; null once the workers are gone.
  void set_listener(space_listener* listener) noexcept {
    const std::lock_guard lock(listener_mutex_);
    listener_ = listener;
  }

 protected:
  void allocate_host(const memory& wanted, bool fixed) {
    batch_ring::options o{.rows = wanted.rows, .memory = {}, .fixed = fixed, .keys = wanted.keys};
    for (std::size_t i = 0; i < wanted.host_slots; ++i) {
      host_memory_.push_back(backend_->allocate_host(wanted.batch_bytes));
      o.memory.push_back(static_cast<std::byte*>(host_memory_.back()));
    }
    host_.start(o);
  }

  void free_host_slot(std::size_t slot) noexcept {
    host_.free(slot);
    const std::lock_guard lock(listener_mutex_);
    if (listener_) listener_->room_freed();
  }

  batch_ring host_;
  const std::shared_ptr<device_backend> backend_;

 private:
  std::vector<void*> host_memory_;
  std::mutex listener_mutex_;
  space_listener* listener_ = nullptr;
};

/// To whoever asks for a batch that needs a slot of those that he holds. `fixed`: the batch that only one slot is for.
template <class = void>
[[noreturn]] void throw_all_leased(const batch_output& from, std::optional<std::uint64_t> fixed) {
  const std::size_t count = from.leased();
  const std::string held = std::to_string(count) + (count == 1 ? " batch is" : " batches are") + " still held, ";
  throw setup_error(fixed ? "slot " + std::to_string(*fixed % from.lease_slots()) + ", the next batch's, is leased: " +
                                held + "that one among them"
                          : "all slots are leased: " + held + "so no further batch can be made",
                    "Release batches before asking for the next, raise prefetch({.batches}) or to_device({.slots}), or "
                    "set session_options::released_elsewhere");
}

/// For devices that use batches where they were written.
/// A template only so that including it costs little.
template <class = void>
class basic_host_batch_output final : public batch_output {
 public:
  basic_host_batch_output(std::shared_ptr<device_backend> backend, bool fixed_slots)
      : batch_output(std::move(backend)), fixed_slots_(fixed_slots) {}

  void allocate(const memory& wanted) override { allocate_host(wanted, fixed_slots_); }

  batch_ring::taken take(std::uint64_t batch, bool stop_at_epoch) override { return host_.take(batch, stop_at_epoch); }
  bool can_take(std::uint64_t batch, bool stop_at_epoch) const override {
    return (stop_at_epoch && host_.starts_epoch(batch)) || host_.can_take(batch);
  }
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
using host_batch_output = basic_host_batch_output<>;

}}  // namespace millrace
