// Provides an NVIDIA GPU as a device, with pinned host slots (the memory of batches), a copy stream and events.
//
//   auto flow = ... | mr::to_device({.device = mr::cuda_device(1), .stream = my_stream, .slots = 3});
//   mr::best_device();                       // the GPU of this process's local rank, or the host without a GPU
//   b.get<&example::pixels>().data;          // device memory, ready for work in my_stream
//
// This header is available if the build dependency of Millrace detects CUDA and defines MILLRACE_CUDA. The header
// requires cudart, but not nvcc.
// Copies run in a non-blocking stream. Events order the copies relative to the work in the user's stream. The default
// of `stream` is the legacy stream of the device. Memory, stream and events are created when the session starts. Host
// slots are pinned (cuda_slots.hpp). If pinned memory cannot be allocated, the slots are pageable: copies are slower,
// and next() may wait for a training step. In that case each session sends one notice, and the name of its device
// states that the slots are pageable.
// On a machine with several NUMA nodes, host slots are allocated on the node of the GPU, if that node has free memory.
// The name of the device includes this node, or the reason why the slots are elsewhere.
// Pinning memory is slow. Therefore up to 1 GiB of a session's host slots remain for the next session on the same
// `device` object, such as the next validation. The slots are freed when a session needs slots of another size. Slots
// are also freed when the `device` object and all sessions that use it have been destroyed.
// Errors: setup_error if the device does not exist or the stream is being captured; io_error with CUDA's own message
// for other failures.
// Threads: any; each thread keeps its current device. A graph capture on the user's thread is not disturbed.
// Contexts: if the thread that creates the device has a current context on this GPU, such as one from cuCtxCreate(),
// the device uses that context. Otherwise the device uses the primary context. Streams of another context are rejected.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/device/cuda_error.hpp>
#include <millrace/device/cuda_slots.hpp>
#include <millrace/device/device.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

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

  // A waiting thread sleeps instead of spinning, so that the workers can use the core.
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

  /// Bytes of free host slots that a GPU keeps for its next session.
  static constexpr std::size_t max_spare_bytes = std::size_t{1} << 30;

  const gpu_context gpu_;
  const std::string sysfs_;
  std::string name_;
  std::optional<unsigned> node_;   // node of the GPU, if the machine has several nodes
  bool registers_ = true;          // whether registering memory also pins the memory
  const std::shared_ptr<spare_slots> spare_;
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
