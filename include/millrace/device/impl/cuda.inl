// Definitions for cuda.hpp.
#pragma once

#include <millrace/device/cuda.hpp>

#include <millrace/base/notice.hpp>
#include <millrace/base/numa.hpp>
#include <millrace/device/host.hpp>
#include <millrace/device/stream_name.hpp>

#include <algorithm>
#include <system_error>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE int cuda_device_count() noexcept {
  try {
    return detail::count_gpus();
  } catch (const io_error& e) {
    detail::print_notice("no GPU is used: " + e.message() + ". ", e.hint());
  }
  return 0;
}

namespace detail {

MILLRACE_INLINE int count_gpus() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  int driver = 0;
  const bool without_driver = result == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess &&
                              driver == 0;
  if (result != cudaErrorNoDevice && !without_driver) return check_cuda(result, "cudaGetDeviceCount"), count;
  ignore_cuda(result);
  return 0;
}

MILLRACE_INLINE cuda_backend::cuda_backend(int ordinal, std::string sysfs)
    : ordinal_(ordinal), sysfs_(std::move(sysfs)) {
  const int count = count_gpus();
  if (ordinal < 0 || ordinal >= count)
    throw setup_error("the GPU does not exist: got cuda_device(" + std::to_string(ordinal) +
                          "), and this process sees " + std::to_string(count) + " GPUs",
                      "Devices are numbered from 0: see nvidia-smi and CUDA_VISIBLE_DEVICES");
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  name_ = "cuda:" + std::to_string(ordinal) + " (" + properties.name + ")";
  char address[32] = {};
  if (const cudaError_t result = cudaDeviceGetPCIBusId(address, sizeof address, ordinal); result == cudaSuccess)
    node_ = numa_node_of_pci_device(address, sysfs_);
  else
    ignore_cuda(result);   // all nodes are equally near in that case
  const current_device here(ordinal_);
  const capture_tolerant now;
  check_cuda(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  name_stream(copies_, "millrace copies");
}

MILLRACE_INLINE cuda_backend::~cuda_backend() {
  quietly(ordinal_, [&] { return cudaStreamDestroy(copies_); });
}

MILLRACE_INLINE std::string cuda_backend::name() const {
  if (pageable_used_) return name_ + " with pageable host slots";
  const std::lock_guard lock(mutex_);
  const std::string node = node_ ? "NUMA node " + std::to_string(*node_) : "";
  if (!not_near_reason_.empty()) return name_ + " with host slots not bound to " + node + " (" + not_near_reason_ + ")";
  return near_.empty() ? name_ : name_ + " with host slots on " + node;
}

MILLRACE_INLINE std::vector<unsigned> cuda_backend::near_cores() const {
  return node_ ? allowed_cores(cores_of_numa_node(*node_, sysfs_)) : std::vector<unsigned>{};
}

MILLRACE_INLINE void cuda_backend::enter_thread() {
  check_cuda(cudaSetDevice(ordinal_), "cudaSetDevice");
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;   // never restored, because Millrace owns the thread
  check_cuda(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
}

MILLRACE_INLINE void* cuda_backend::allocate_host(std::size_t bytes) {
  void* memory = allocate_near(bytes);
  if (memory) return memory;
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

MILLRACE_INLINE void cuda_backend::free_host(void* memory) noexcept {
  std::optional<node_memory> bound;
  {
    const std::lock_guard lock(mutex_);
    const auto slot = std::find_if(near_.begin(), near_.end(), [&](const auto& m) { return m.get() == memory; });
    if (slot != near_.end()) {
      bound.emplace(std::move(*slot));
      near_.erase(slot);
    }
    const auto pageable = std::find(pageable_.begin(), pageable_.end(), memory);
    if (pageable != pageable_.end()) {
      pageable_.erase(pageable);
      free_slot(memory);
      return;
    }
  }
  quietly(ordinal_, [&] { return bound ? cudaHostUnregister(memory) : cudaFreeHost(memory); });
}

MILLRACE_INLINE void* cuda_backend::allocate_device(std::size_t bytes) {
  const current_device here(ordinal_);
  const capture_tolerant now;
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, bytes), "cudaMalloc");
  return memory;
}

MILLRACE_INLINE void cuda_backend::free_device(void* memory) noexcept {
  quietly(ordinal_, [&] { return cudaFree(memory); });
}

MILLRACE_INLINE std::unique_ptr<device_event> cuda_backend::make_event() {
  return make_event(cudaEventDisableTiming | cudaEventBlockingSync);
}

MILLRACE_INLINE std::optional<std::uint64_t> cuda_backend::elapsed_ns(device_event& from, device_event& to) {
  const current_device here(ordinal_);
  const capture_tolerant now;
  float ms = 0;
  const cudaError_t result = cudaEventElapsedTime(&ms, handle(from), handle(to));
  if (result == cudaErrorNotReady) {
    ignore_cuda(result);
    return {};
  }
  check_cuda(result, "cudaEventElapsedTime");
  return static_cast<std::uint64_t>(1e6 * static_cast<double>(std::max(ms, 0.0F)));
}

MILLRACE_INLINE void cuda_backend::copy_waits_for(device_event& mark) {
  const current_device here(ordinal_);
  check_cuda(cudaStreamWaitEvent(copies_, handle(mark), 0), "cudaStreamWaitEvent");
}

MILLRACE_INLINE void cuda_backend::copy_to_device(void* to, const void* from, std::size_t bytes) {
  const current_device here(ordinal_);
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, copies_), "cudaMemcpyAsync");
}

MILLRACE_INLINE void cuda_backend::record_copy(device_event& mark) {
  const current_device here(ordinal_);
  check_cuda(cudaEventRecord(handle(mark), copies_), "cudaEventRecord");
}

MILLRACE_INLINE void cuda_backend::check_stream(stream_view stream) {
  const current_device here(ordinal_);
  if (is_capturing(stream))
    throw setup_error("a batch was requested while its stream was being captured",
                      "Get the batch before cudaStreamBeginCapture and release it after cudaStreamEndCapture; with "
                      "to_device({.fixed_slots = true}) a graph captured for a slot fits all its later batches");
}

MILLRACE_INLINE void cuda_backend::check_owner(stream_view stream, device_event& mark) {
  // The default streams are those of the current device. Recording in the legacy stream would be a barrier.
  if (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread) return;
  const current_device here(ordinal_);
  const capture_tolerant now;
  if (is_capturing(stream)) return;
  const cudaError_t result = cudaEventRecord(handle(mark), stream);
  if (result != cudaErrorInvalidResourceHandle) return check_cuda(result, "cudaEventRecord");
  ignore_cuda(result);
  throw setup_error("the stream does not exist or belongs to another GPU than " + name_,
                    "Create the stream after cudaSetDevice(" + std::to_string(ordinal_) + ")");
}

MILLRACE_INLINE void cuda_backend::record(device_event& mark, stream_view stream) {
  const current_device here(ordinal_);
  // An event recorded during a capture is added to the graph, not to the stream. A stream that waits for it joins the
  // capture, and so would the copy stream.
  if (is_capturing(stream))
    throw setup_error("a batch was released while its stream was being captured",
                      "Release it after cudaStreamEndCapture, or before cudaStreamBeginCapture");
  check_cuda(cudaEventRecord(handle(mark), named_stream(stream)), "cudaEventRecord");
}

MILLRACE_INLINE void cuda_backend::stream_waits_for(stream_view stream, device_event& mark) {
  const current_device here(ordinal_);
  check_cuda(cudaStreamWaitEvent(named_stream(stream), handle(mark), 0), "cudaStreamWaitEvent");
}

MILLRACE_INLINE void cuda_backend::wait(device_event& mark) {
  const current_device here(ordinal_);
  const capture_tolerant now;
  check_cuda(cudaEventSynchronize(handle(mark)), "cudaEventSynchronize");
}

MILLRACE_INLINE void cuda_backend::copy_to_host(void* to, const void* from, std::size_t bytes, stream_view after) {
  check_stream(after);
  const current_device here(ordinal_);
  const capture_tolerant now;   // must not invalidate a capture of another stream
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, named_stream(after)), "cudaMemcpyAsync");
  check_cuda(cudaStreamSynchronize(named_stream(after)), "cudaStreamSynchronize");
}

MILLRACE_INLINE std::unique_ptr<device_event> cuda_backend::make_event(unsigned flags) {
  const current_device here(ordinal_);
  auto result = std::make_unique<event>();
  result->ordinal = ordinal_;
  check_cuda(cudaEventCreateWithFlags(&result->handle, flags), "cudaEventCreateWithFlags");
  return result;
}

MILLRACE_INLINE cuda_backend::event::~event() {
  if (handle) quietly(ordinal, [this] { return cudaEventDestroy(handle); });
}

/// Returns null if the GPU's node does not matter or is not available. The runtime's own pinned memory is then
/// sufficient.
MILLRACE_INLINE void* cuda_backend::allocate_near(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!node_ || !not_near_reason_.empty()) return nullptr;
  near_.reserve(near_.size() + 1);
  node_memory memory(bytes, *node_);
  if (memory.error() != 0 && !memory.touch_on(near_cores())) {
    not_near_reason_ = "mbind: " + std::generic_category().message(memory.error());
    return nullptr;
  }
  const current_device here(ordinal_);
  const capture_tolerant now;
  const cudaError_t result = cudaHostRegister(memory.get(), bytes, cudaHostRegisterPortable);   // touches the pages
  if (result != cudaSuccess) {
    ignore_cuda(result);
    not_near_reason_ = std::string("cudaHostRegister: ") + cudaGetErrorName(result);
    return nullptr;
  }
  near_.push_back(std::move(memory));
  return near_.back().get();
}

MILLRACE_INLINE void* cuda_backend::allocate_pageable(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  pageable_.reserve(pageable_.size() + 1);
  void* const memory = allocate_slot(bytes);
  pageable_.push_back(memory);
  if (!pageable_used_.exchange(true))
    print_notice(std::to_string(bytes) +
                     " bytes of pinned memory could not be allocated: slots use pageable memory, so copies to " +
                     name_ + " are slower. ",
                 "Lower prefetch({.batches}) or the batch size, or raise the memory limit of the container");
  return memory;
}

}  // namespace detail

}}  // namespace millrace
