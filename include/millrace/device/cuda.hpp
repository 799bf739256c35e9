// An NVIDIA GPU as a device, with pinned host slots, its own copy stream and events.
//
//   auto flow = ... | mr::to_device({.device = mr::cuda_device(1), .stream = my_stream, .slots = 3});
//   mr::best_device();                       // the GPU of this process's local rank, or the host without a GPU
//   b.get<&example::pixels>().data;          // device memory, ready for work in my_stream
//
// This header is available if the build finds CUDA; its build dependency then defines MILLRACE_CUDA. The header needs
// cudart and no nvcc.
// Copies run in a non-blocking stream. Only events order them with the user's stream. The default of `stream` is the
// legacy stream of that device. Calls on the step's path return at once. Memory, stream and events are made when the
// session starts. If pinned memory cannot be allocated, the slots are pageable and copies are slower. One warning and
// the name of the device then say so.
// Errors: setup_error if the device does not exist or the stream is being captured; io_error with CUDA's own message
// for other failures.
// Threads: any; each thread keeps its current device. A capture on the user's thread is not disturbed.
#pragma once

#include <millrace/device/cuda_error.hpp>
#include <millrace/device/host.hpp>
#include <millrace/device/stream_name.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <optional>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Returns the number of GPUs that this process may use; 0 without a driver.
/// If a driver is installed and fails, prints the reason to stderr and returns 0.
inline int cuda_device_count() noexcept {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess) return count;
  detail::ignore_cuda(result);
  int driver = 0;
  const bool without_driver = result == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess &&
                              driver == 0;
  if (result != cudaErrorNoDevice && !without_driver)
    std::fprintf(stderr, "millrace: no GPU is used: %s, %s\n", cudaGetErrorName(result), cudaGetErrorString(result));
  return 0;
}

namespace detail {

class cuda_backend final : public device_backend {
 public:
  explicit cuda_backend(int ordinal) : ordinal_(ordinal) {
    const int count = cuda_device_count();
    if (ordinal < 0 || ordinal >= count)
      throw setup_error("the GPU does not exist: got cuda_device(" + std::to_string(ordinal) +
                            "), and this process sees " + std::to_string(count) + " GPUs",
                        "Devices count from 0: see nvidia-smi and CUDA_VISIBLE_DEVICES");
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
    name_ = "cuda:" + std::to_string(ordinal) + " (" + properties.name + ")";
    const current_device here(ordinal_);
    const capture_tolerant now;
    check_cuda(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    name_stream(copies_, "millrace copies");
  }
  ~cuda_backend() override {
    quietly([&] { return cudaStreamDestroy(copies_); });
  }

  std::string name() const override { return pageable_used_ ? name_ + " with pageable host slots" : name_; }
  std::shared_ptr<device_backend> for_one_session() override { return std::make_shared<cuda_backend>(ordinal_); }
  int ordinal() const noexcept override { return ordinal_; }
  bool leases_host_slots() const override { return false; }
  memory_kind memory() const override { return memory_kind::device; }

  void enter_thread() override {
    check_cuda(cudaSetDevice(ordinal_), "cudaSetDevice");
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;   // never restored, because Millrace owns the thread
    check_cuda(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  }

  void* allocate_host(std::size_t bytes) override {
    void* memory = nullptr;
    cudaError_t result = cudaSuccess;
    {
      const current_device here(ordinal_);
      const capture_tolerant now;
      result = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
    }
    if (result == cudaSuccess) return memory;
    if (result != cudaErrorMemoryAllocation && result != cudaErrorNotSupported && result != cudaErrorOperatingSystem)
      check_cuda(result, "cudaHostAlloc");
    cudaGetLastError();
    return allocate_pageable(bytes);
  }
  void free_host(void* memory) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::find(pageable_.begin(), pageable_.end(), memory);
      if (found != pageable_.end()) {
        pageable_.erase(found);
        free_slot(memory);
        return;
      }
    }
    quietly([&] { return cudaFreeHost(memory); });
  }
  void* allocate_device(std::size_t bytes) override {
    const current_device here(ordinal_);
    const capture_tolerant now;
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, bytes), "cudaMalloc");
    return memory;
  }
  void free_device(void* memory) noexcept override {
    quietly([&] { return cudaFree(memory); });
  }

  // A waiting thread sleeps instead of spinning, so that the workers can use the core.
  std::unique_ptr<device_event> make_event() override {
    return make_event(cudaEventDisableTiming | cudaEventBlockingSync);
  }
  std::unique_ptr<device_event> make_timed_event() override { return make_event(cudaEventDefault); }
  std::optional<std::uint64_t> elapsed_ns(device_event& from, device_event& to) override {
    const capture_tolerant now;   // needs no current device: the events know their device
    float ms = 0;
    const cudaError_t result = cudaEventElapsedTime(&ms, handle(from), handle(to));
    if (result == cudaErrorNotReady) {
      ignore_cuda(result);
      return {};
    }
    check_cuda(result, "cudaEventElapsedTime");
    return static_cast<std::uint64_t>(1e6 * static_cast<double>(std::max(ms, 0.0F)));
  }

  void copy_waits_for(device_event& mark) override {
    const current_device here(ordinal_);
    check_cuda(cudaStreamWaitEvent(copies_, handle(mark), 0), "cudaStreamWaitEvent");
  }
  void copy_to_device(void* to, const void* from, std::size_t bytes) override {
    const current_device here(ordinal_);
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, copies_), "cudaMemcpyAsync");
  }
  void record_copy(device_event& mark) override {
    const current_device here(ordinal_);
    check_cuda(cudaEventRecord(handle(mark), copies_), "cudaEventRecord");
  }

  void check_stream(stream_view stream) override {
    const current_device here(ordinal_);
    if (is_capturing(stream))
      throw setup_error("a batch was asked for while its stream is being captured",
                        "Get the batch before cudaStreamBeginCapture and release it after cudaStreamEndCapture; with "
                        "to_device({.fixed_slots = true}) a graph captured for a slot fits all its later batches");
  }
  void record(device_event& mark, stream_view stream) override {
    const current_device here(ordinal_);
    // An event recorded during a capture goes into the graph, not into the stream. A stream that waits for it joins the
    // capture, and so would the copy stream.
    if (is_capturing(stream))
      throw setup_error("a batch was released while its stream was being captured",
                        "Release it after cudaStreamEndCapture, or before cudaStreamBeginCapture");
    check_cuda(cudaEventRecord(handle(mark), named_stream(stream)), "cudaEventRecord");
  }
  void stream_waits_for(stream_view stream, device_event& mark) override {
    const current_device here(ordinal_);
    check_cuda(cudaStreamWaitEvent(named_stream(stream), handle(mark), 0), "cudaStreamWaitEvent");
  }
  void wait(device_event& mark) override {
    const current_device here(ordinal_);
    const capture_tolerant now;
    check_cuda(cudaEventSynchronize(handle(mark)), "cudaEventSynchronize");
  }
  void copy_to_host(void* to, const void* from, std::size_t bytes, stream_view after) override {
    check_stream(after);
    const current_device here(ordinal_);
    const capture_tolerant now;   // must not invalidate a capture of another stream
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, named_stream(after)), "cudaMemcpyAsync");
    check_cuda(cudaStreamSynchronize(named_stream(after)), "cudaStreamSynchronize");
  }

 private:
  std::unique_ptr<device_event> make_event(unsigned flags) {
    const current_device here(ordinal_);
    auto made = std::make_unique<event>();
    check_cuda(cudaEventCreateWithFlags(&made->handle, flags), "cudaEventCreateWithFlags");
    return made;
  }
  struct event : device_event {
    cudaEvent_t handle = nullptr;
    ~event() override {
      if (handle) ignore_cuda(cudaEventDestroy(handle));
    }
  };
  static cudaEvent_t handle(device_event& mark) noexcept { return static_cast<event&>(mark).handle; }

  void* allocate_pageable(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    pageable_.reserve(pageable_.size() + 1);
    void* const memory = allocate_slot(bytes);
    pageable_.push_back(memory);
    if (!pageable_used_.exchange(true))
      std::fprintf(stderr,
                   "millrace: %zu bytes of pinned memory could not be had: slots are pageable, copies to %s slower. "
                   "Lower prefetch({.batches}) or the batch size, or raise the limit on locked memory\n",
                   bytes, name_.c_str());
    return memory;
  }

  /// Makes a call for a destructor: with the device current if possible, and without throwing.
  template <class Call>
  void quietly(Call&& call) const noexcept {
    std::optional<current_device> here;
    std::optional<capture_tolerant> now;
    try {
      here.emplace(ordinal_);
      now.emplace();
    } catch (...) {
      // The runtime has shut down or the device has failed. The call below may still free something.
    }
    ignore_cuda(call());
  }

  const int ordinal_;
  std::string name_;
  cudaStream_t copies_ = nullptr;
  std::mutex mutex_;
  std::vector<void*> pageable_;
  std::atomic<bool> pageable_used_{false};
};

}  // namespace detail

/// Returns GPU `ordinal`, numbered from 0 as by cudaSetDevice().
/// Throws setup_error if that GPU does not exist, io_error if it cannot be used.
inline device cuda_device(int ordinal) { return device(std::make_shared<detail::cuda_backend>(ordinal)); }

}}  // namespace millrace
