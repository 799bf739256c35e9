// Defines the interface of a device: memory, events and copies. to_device and the stager (the thread that copies
// batches to the device) use devices only through this interface.
//
//   mr::device host = mr::host_device();
//   mr::device best = mr::best_device();              // a GPU if there is one, else the host
//   auto flow = mr::from(examples) | mr::batch<&example::features>({.size = 256})
//             | mr::to_device({.device = best});
//
// Terms: a *slot* is the memory of a batch. A *stream* is a queue of work on the device. An *event* is a mark in a
// stream.
// In the comments of this header, "waits" means that a stream of the device waits, not a thread. Only wait() and
// copy_to_host() block the calling thread. Never call these two functions in the path of a training step.
// Threads: the stager calls the copy functions; another thread calls wait(). Both threads call enter_thread() first.
// The owner of a batch calls record(), stream_waits_for() and copy_to_host().
// Errors: functions throw io_error. Destructors never throw.
#pragma once

#include <millrace/device/stream.hpp>
#include <millrace/item/tensor/tensor_view.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// A mark in a stream. Recording an event again moves the mark. An event that was never recorded counts as reached.
struct device_event {
  virtual ~device_event() = default;
};

/// The interface that every kind of device implements.
class device_backend {
 public:
  virtual ~device_backend() = default;

  /// Returns the name for reports and messages.
  virtual std::string name() const = 0;
  /// Returns true if the user receives the same slots that the workers write. In this case, copies, a ring of device
  /// slots and a stager are not needed.
  virtual bool leases_host_slots() const = 0;
  /// Returns the kind of memory in which batches are delivered. The kind determines whether the host can read batches.
  virtual memory_kind memory() const = 0;

  /// Returns a device object with a separate copy stream for one session. Null means that sessions use this object.
  virtual std::shared_ptr<device_backend> for_one_session() { return nullptr; }
  /// Returns the number of the device among devices of its kind, from 0; -1 for the host.
  virtual int ordinal() const noexcept { return -1; }
  /// Returns the cores on the device's NUMA node that the calling thread may use. The result is empty if all cores are
  /// equally near, or if the node is unknown.
  virtual std::vector<unsigned> near_cores() const { return {}; }
  /// Sets this device as current for the calling thread.
  virtual void enter_thread() {}

  /// Returns memory for a host slot. A GPU pins the memory. If this fails, the memory is pageable, and warning()
  /// returns a text.
  virtual void* allocate_host(std::size_t bytes) = 0;
  virtual void free_host(void* memory) noexcept = 0;
  /// Returns a warning if the allocated memory slows sessions down; empty otherwise.
  virtual std::string warning() const { return {}; }
  /// Returns memory for a device slot.
  virtual void* allocate_device(std::size_t bytes) = 0;
  virtual void free_device(void* memory) noexcept = 0;

  /// Returns a new event, not recorded yet.
  virtual std::unique_ptr<device_event> make_event() = 0;
  /// Returns an event that records the time at which the stream reaches the event. Returns null if the device has no
  /// clock, or if events in this stream delay other streams, as events in CUDA's legacy default stream do.
  virtual std::unique_ptr<device_event> make_timed_event(stream_view) { return nullptr; }
  /// Returns the nanoseconds between two timed events that were recorded in this order; empty until the device has
  /// reached both.
  virtual std::optional<std::uint64_t> elapsed_ns(device_event&, device_event&) { return {}; }
  /// The device's copy stream waits for `event`.
  virtual void copy_waits_for(device_event& event) = 0;
  /// Queues a copy from the host to the device in the copy stream.
  virtual void copy_to_device(void* to, const void* from, std::size_t bytes) = 0;
  /// Records `event` in the copy stream.
  virtual void record_copy(device_event& event) = 0;
  /// Throws setup_error if the user's stream is being captured, or is the default stream of a context other than the
  /// device's context.
  virtual void check_stream(stream_view) {}
  /// Throws setup_error if the user's stream does not belong to this device. A GPU checks this by recording `event` in
  /// the stream.
  virtual void check_owner(stream_view, device_event&) {}
  /// Records `event` in the user's stream.
  virtual void record(device_event& event, stream_view stream) = 0;
  /// The user's stream waits for `event`.
  virtual void stream_waits_for(stream_view stream, device_event& event) = 0;
  /// Blocks the calling thread until the event is reached.
  virtual void wait(device_event& event) = 0;
  /// Copies bytes of a batch to the host for inspection. The copy begins after the queued work of the stream
  /// `after`. Blocks until the copy is complete.
  virtual void copy_to_host(void* to, const void* from, std::size_t bytes, stream_view after) = 0;
};

/// A handle to a device; cheap to copy. Memory from a device remains valid while a session or a batch uses it, even if
/// all handles have been destroyed.
class device {
 public:
  explicit device(std::shared_ptr<device_backend> backend) : backend_(std::move(backend)) {}

  /// Returns the name for reports and messages.
  std::string name() const { return backend_->name(); }
  /// Returns the number for cudaSetDevice(); -1 if this device is not a GPU.
  int ordinal() const noexcept { return backend_->ordinal(); }
  /// Returns the implementation.
  const std::shared_ptr<device_backend>& backend() const noexcept { return backend_; }

 private:
  std::shared_ptr<device_backend> backend_;
};

}}   // namespace millrace
