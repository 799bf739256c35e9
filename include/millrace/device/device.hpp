// The one interface behind which a device lies: memory, events, copies. to_device and the stager know nothing else.
//
//   mr::to_device({.device = mr::host_device()})
//   mr::to_device({.device = mr::copying_device({.bytes_per_second = 12e9})})
//   mr::to_device({.device = mr::best_device()})          // a GPU where there is one, else the host
//
// Words: a *stream* is a queue of work on the device; an *event* is a mark in a stream. What "waits" without further
// word is the device's stream, never a thread. The calls that block their thread are wait(), made on a thread that does
// nothing else, and copy_to_host(), which is not for the step's path. Threads: copy calls come from one stager thread,
// wait() from another; record(), stream_waits_for() and copy_to_host() from whoever holds a batch; every thread calls
// enter_thread() first. Errors: io_error. Destructors never throw.
#pragma once

#include <millrace/device/stream.hpp>
#include <millrace/item/tensor_view.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// A mark in a stream. Recorded again, it stands for the new place; never recorded, it reads as reached.
struct device_event {
  virtual ~device_event() = default;
};

/// What a device can do.
class device_backend {
 public:
  virtual ~device_backend() = default;

  virtual std::string name() const = 0;
  /// True: batches are used where they were written; there is no copy, no device ring and no stager.
  virtual bool leases_host_slots() const = 0;
  /// Whether the host can read a delivered batch.
  virtual memory_kind memory() const = 0;

  /// What one session uses: a copy stream of its own, so that none waits behind another's steps. Null: this object.
  virtual std::shared_ptr<device_backend> for_one_session() { return nullptr; }
  /// Of several of its kind, from 0; -1 for the host.
  virtual int ordinal() const noexcept { return -1; }
  /// Makes this device current for the calling thread.
  virtual void enter_thread() {}

  virtual void* allocate_host(std::size_t bytes) = 0;   ///< pinned where that means something
  virtual void free_host(void* memory) noexcept = 0;
  virtual void* allocate_device(std::size_t bytes) = 0;
  virtual void free_device(void* memory) noexcept = 0;

  virtual std::unique_ptr<device_event> make_event() = 0;
  /// One that says when it was reached; null where the device has no clock of its own.
  virtual std::unique_ptr<device_event> make_timed_event() { return nullptr; }
  /// Nanoseconds between two such, recorded in streams one after the other; none as long as they are not reached.
  virtual std::optional<std::uint64_t> elapsed_ns(device_event&, device_event&) { return {}; }
  /// On the device's own copy stream: wait for `event`, copy, mark.
  virtual void copy_waits_for(device_event& event) = 0;
  virtual void copy_to_device(void* to, const void* from, std::size_t bytes) = 0;
  virtual void record_copy(device_event& event) = 0;
  /// Throws setup_error where the user's stream cannot take a batch now: while it is being captured.
  virtual void check_stream(stream_view) {}
  /// On the user's stream.
  virtual void record(device_event& event, stream_view stream) = 0;
  virtual void stream_waits_for(stream_view stream, device_event& event) = 0;
  /// Blocks the calling thread until the event is reached.
  virtual void wait(device_event& event) = 0;
  /// For looking at a batch: blocks until what is in the user's stream is through and the bytes are on the host.
  virtual void copy_to_host(void* to, const void* from, std::size_t bytes, stream_view after) = 0;
};

/// A device as a value; cheap to copy. Memory handed out by it outlives every handle that is still in use.
class device {
 public:
  explicit device(std::shared_ptr<device_backend> backend) : backend_(std::move(backend)) {}

  std::string name() const { return backend_->name(); }
  /// What cudaSetDevice takes; -1 where there is no GPU.
  int ordinal() const noexcept { return backend_->ordinal(); }
  const std::shared_ptr<device_backend>& backend() const noexcept { return backend_; }

 private:
  std::shared_ptr<device_backend> backend_;
};

}}  // namespace millrace
