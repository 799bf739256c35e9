// Provides an NVIDIA GPU as a device, with pinned host slots (the memory of batches), a copy stream and events.
//
//   auto flow = ... | mr::to_device({.device = mr::cuda_device(1), .stream = my_stream, .slots = 3});
//   mr::best_device();                       // the GPU of this process's local rank, or the host without a GPU
//   b.get<&example::pixels>().data;          // device memory, ready for work in my_stream
//
// This header requires cudart, and a build with CUDA, which defines MILLRACE_CUDA. The header does not require nvcc.
// Copies run in a non-blocking stream. Events order the copies relative to the work in the user's stream. By default,
// `stream` is CUDA's legacy default stream. Memory, stream and events are created when the session starts. Host slots
// are pinned (see spare_slot_memory). If pinned memory cannot be allocated, the slots are pageable: copies are slower,
// and next() may wait for a training step. In that case each session sends one notice, and the name of its device
// states that the slots are pageable. On a machine with several NUMA nodes, host slots are allocated on the node of the
// GPU, if that node has free memory. The name of the device includes this node, or the reason why the slots are
// elsewhere. Pinning memory is slow. Therefore up to 1 GiB of a session's host slots remain for the next session on the
// same `device` object, such as the next validation. These spare slots are freed when a session needs slots of another
// size. Spare slots are also freed when the `device` object and all sessions that use it have been destroyed.
// Errors: setup_error if the device does not exist or the stream is being captured; io_error with CUDA's own message
// for other failures.
// Threads: any. The current device of the user's threads does not change. A graph capture on the user's thread is not
// disturbed.
// Contexts: if the thread that creates the device has a current context on this GPU, such as one from cuCtxCreate(),
// the device uses that context. Otherwise the device uses the primary context. Streams of another context are rejected.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/device/cuda_error.hpp>
#include <millrace/device/device.hpp>
#include <millrace/device/node_memory.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Allocates the host slots of a GPU in pinned memory, and keeps free slots for the next session.
//
//   mr::detail::spare_slot_memory spare(std::size_t{1} << 30);          // keeps at most 1 GiB
//   auto slot = spare.reuse(38'535'168);                          // a slot of this size, or null
//   if (!slot) slot = std::make_unique<mr::detail::pinned_slot>(38'535'168, place);
//   spare.keep(std::move(slot));                                  // no copy may use the slot any more
//
// A slot (the memory of a batch) is system memory in huge pages. Threads on cores near the GPU touch the pages first,
// so that the pages are near the GPU. Then CUDA registers the pages, which pins them. If registering fails,
// cudaHostAlloc() allocates the slot. If the GPU uses the page tables of the host (GH200), registering does not pin
// memory, and cudaHostAlloc() is always used. If cudaHostAlloc() fails, the slot is pageable.
// Errors: io_error from CUDA if the GPU cannot be used; std::bad_alloc. Threads: any; one thread at a time for a slot.
// Lifetime: the destructor of spare_slot_memory frees the slots that it keeps.

/// The location of the slots of a GPU.
struct pinned_place {
  gpu_context gpu{};                    ///< the GPU
  std::optional<unsigned> node{};       ///< NUMA node of the GPU, if the machine has several nodes
  std::vector<unsigned> near_cores{};   ///< cores of the node that this process may use
  bool registers = true;                ///< whether registering memory also pins the memory
};

/// Memory of one host slot.
class pinned_slot {
 public:
  pinned_slot(std::size_t bytes, const pinned_place& where);
  pinned_slot(const pinned_slot&) = delete;
  pinned_slot& operator=(const pinned_slot&) = delete;
  ~pinned_slot();

  /// Returns the first byte.
  void* get() const noexcept { return memory_; }
  /// Returns the size in bytes, rounded up to complete pages.
  std::size_t bytes() const noexcept { return bytes_; }
  /// Returns whether the memory is pinned.
  bool is_pinned() const noexcept { return from_ != source::system; }
  /// Returns the reason why the pages may be far from the GPU; empty if they are near.
  const std::string& far_reason() const noexcept { return far_reason_; }
  /// Returns CUDA's error if registering the memory failed, otherwise an empty string.
  const std::string& refusal() const noexcept { return refusal_; }

 private:
  enum class source { registered, runtime, system };

  bool allocate_registered(const pinned_place& where);
  bool allocate_by_runtime(const pinned_place& where);

  const gpu_context gpu_;
  const std::size_t bytes_;
  void* memory_ = nullptr;
  source from_ = source::system;
  std::optional<node_memory> pages_;   // the memory, if it is registered
  std::string far_reason_, refusal_;
};

/// Free slots of one GPU.
class spare_slot_memory {
 public:
  explicit spare_slot_memory(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Removes a slot of this size from the spare slots and returns it. If no spare slot has this size, returns null, and
  /// the caller allocates a new slot. Before it returns null, the function frees the oldest spare slots until at least
  /// `bytes` bytes are freed, or no spare slot is left.
  std::unique_ptr<pinned_slot> reuse(std::size_t bytes);
  /// Adds a slot to the spare slots. If the spare slots then exceed the maximum, frees the oldest spare slots.
  void keep(std::unique_ptr<pinned_slot> slot) noexcept;
  /// Frees all slots. Returns whether a slot was freed.
  bool clear() noexcept;

 private:
  /// Moves the oldest slots to `freed`, until the moved slots together have at least `bytes` bytes.
  void free_first(std::size_t bytes, std::vector<std::unique_ptr<pinned_slot>>& freed);

  const std::size_t max_bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<pinned_slot>> slots_;   // oldest first
  std::size_t bytes_ = 0;
};

}}}   // namespace millrace::detail

namespace millrace { inline namespace MILLRACE_ABI {

/// Returns the number of GPUs that this process may use, or 0 without a driver.
/// If the driver is installed but fails, prints the reason to stderr and returns 0.
int cuda_device_count() noexcept;

namespace detail {

/// Returns the number of GPUs that this process may use, or 0 without a driver. Throws io_error if the driver fails.
int count_gpus();

class cuda_backend final : public device_backend {
 public:
  /// `sysfs` is the folder with the kernel's NUMA information; tests pass their own folder.
  explicit cuda_backend(int ordinal, std::string sysfs = "/sys");
  /// Creates a device object for the same GPU, with its own copy stream. Both objects share the spare slots.
  cuda_backend(const cuda_backend& other);
  cuda_backend& operator=(const cuda_backend&) = delete;
  ~cuda_backend() override;

  std::string name() const override;
  std::string warning() const override;
  std::shared_ptr<device_backend> for_one_session() override { return std::make_shared<cuda_backend>(*this); }
  int ordinal() const noexcept override { return gpu_.ordinal; }
  std::vector<unsigned> near_cores() const override;
  bool leases_host_slots() const override { return false; }
  memory_kind memory() const override { return memory_kind::device; }

  void enter_thread() override;

  void* allocate_host(std::size_t bytes) override;
  void free_host(void* memory) noexcept override;
  void* allocate_device(std::size_t bytes) override;
  void free_device(void* memory) noexcept override;

  // A thread that waits for such an event sleeps instead of spinning, so that the workers can use the core.
  std::unique_ptr<device_event> make_event() override;
  std::unique_ptr<device_event> make_timed_event(stream_view stream) override;
  std::optional<std::uint64_t> elapsed_ns(device_event& from, device_event& to) override;

  void copy_waits_for(device_event& mark) override;
  void copy_to_device(void* to, const void* from, std::size_t bytes) override;
  void record_copy(device_event& mark) override;

  void check_stream(stream_view stream) override;
  void check_owner(stream_view stream, device_event& mark) override;
  void record(device_event& mark, stream_view stream) override;
  void stream_waits_for(stream_view stream, device_event& mark) override;
  void wait(device_event& mark) override;
  void copy_to_host(void* to, const void* from, std::size_t bytes, stream_view after) override;

 private:
  std::unique_ptr<device_event> make_event(unsigned flags);
  struct event : device_event {
    cudaEvent_t handle = nullptr;
    gpu_context gpu;
    ~event() override;
  };
  static cudaEvent_t handle(device_event& mark) noexcept { return static_cast<event&>(mark).handle; }

  void make_copy_stream();
  /// Waits for the copies of this object. Returns false if a copy failed.
  bool finish_copies() noexcept;

  /// Maximum bytes of unused host slots that are kept for the next session on the same `device` object.
  static constexpr std::size_t max_spare_bytes = std::size_t{1} << 30;

  const gpu_context gpu_;
  const std::string sysfs_;
  std::string name_;
  std::optional<unsigned> node_;   // node of the GPU, if the machine has several nodes
  bool registers_ = true;          // whether registering memory also pins the memory
  const std::shared_ptr<spare_slot_memory> spare_;
  cudaStream_t copies_ = nullptr;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<pinned_slot>> slots_;   // host slots in use
};

}   // namespace detail

/// Returns GPU `ordinal`, numbered from 0 as in cudaSetDevice(). Throws setup_error if that GPU does not exist, and
/// io_error if that GPU cannot be used.
inline device cuda_device(int ordinal) { return device(std::make_shared<detail::cuda_backend>(ordinal)); }

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/device/impl/cuda.inl>
#endif
