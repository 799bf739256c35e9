// Definitions for cuda.hpp.
#pragma once

#include <millrace/device/cuda.hpp>

#include <millrace/base/notice.hpp>
#include <millrace/base/numa.hpp>
#include <millrace/device/slot_memory.hpp>
#include <millrace/device/stream_name.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <system_error>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE pinned_slot::pinned_slot(std::size_t bytes, const pinned_place& where)
    : gpu_(where.gpu), bytes_(node_memory::mapped_bytes(bytes)) {
  if (!allocate_registered(where) && !allocate_by_runtime(where)) memory_ = allocate_slot(bytes_);
}

MILLRACE_INLINE bool pinned_slot::allocate_registered(const pinned_place& where) {
  if (!where.registers) return false;
  pages_.emplace(bytes_, where.node);
  const bool is_near = pages_->touch(where.near_cores);
  // This precedes the registration, because an exception after the registration would unmap registered pages.
  if (where.node && pages_->error() != 0 && !is_near)
    far_reason_ = "mbind: " + std::generic_category().message(pages_->error());
  const current_context here(gpu_);
  const capture_tolerant now;
  const cudaError_t result = cudaHostRegister(pages_->get(), bytes_, cudaHostRegisterPortable);
  if (result != cudaSuccess) {
    ignore_cuda(result);
    refusal_ = std::string("cudaHostRegister: ") + cudaGetErrorName(result);
    pages_.reset();
    return false;
  }
  memory_ = pages_->get();
  from_ = source::registered;
  return true;
}

MILLRACE_INLINE bool pinned_slot::allocate_by_runtime(const pinned_place& where) {
  const core_scope scope(where.near_cores);
  far_reason_ = where.node && !scope.is_bound() ? "no core of the node is allowed" : "";
  const current_context here(gpu_);
  const capture_tolerant now;
  const cudaError_t result = cudaHostAlloc(&memory_, bytes_, cudaHostAllocPortable);
  if (result == cudaErrorMemoryAllocation || result == cudaErrorNotSupported || result == cudaErrorOperatingSystem) {
    ignore_cuda(result);
    return false;
  }
  check_cuda(result, "cudaHostAlloc");
  from_ = source::runtime;
  return true;
}

MILLRACE_INLINE pinned_slot::~pinned_slot() {
  if (from_ == source::system) free_slot(memory_);
  else ignore_cuda_error(gpu_, [&] { return pages_ ? cudaHostUnregister(memory_) : cudaFreeHost(memory_); });
}

MILLRACE_INLINE std::unique_ptr<pinned_slot> spare_slot_memory::reuse(std::size_t bytes) {
  std::vector<std::unique_ptr<pinned_slot>> freed;   // without the lock
  const std::size_t mapped = node_memory::mapped_bytes(bytes);
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(slots_.begin(), slots_.end(), [&](const auto& s) { return s->bytes() == mapped; });
  if (at == slots_.end()) {
    free_first(mapped, freed);
    return nullptr;
  }
  std::unique_ptr<pinned_slot> slot = std::move(*at);
  slots_.erase(at);
  bytes_ -= mapped;
  return slot;
}

MILLRACE_INLINE void spare_slot_memory::keep(std::unique_ptr<pinned_slot> slot) noexcept {
  std::vector<std::unique_ptr<pinned_slot>> freed;   // without the lock
  const std::size_t bytes = slot->bytes();
  if (bytes > max_bytes_) return;
  const std::lock_guard lock(mutex_);
  try {
    slots_.reserve(slots_.size() + 1);
    if (bytes_ + bytes > max_bytes_) free_first(bytes_ + bytes - max_bytes_, freed);
    slots_.push_back(std::move(slot));
    bytes_ += bytes;
  } catch (const std::bad_alloc&) {
    // The slot is freed.
  }
}

MILLRACE_INLINE void spare_slot_memory::free_first(std::size_t bytes,
                                                   std::vector<std::unique_ptr<pinned_slot>>& freed) {
  std::size_t count = 0, sum = 0;
  while (count < slots_.size() && sum < bytes) sum += slots_[count++]->bytes();
  const auto end = slots_.begin() + static_cast<std::ptrdiff_t>(count);
  freed.reserve(count);
  std::move(slots_.begin(), end, std::back_inserter(freed));
  slots_.erase(slots_.begin(), end);
  bytes_ -= sum;
}

MILLRACE_INLINE bool spare_slot_memory::clear() noexcept {
  std::vector<std::unique_ptr<pinned_slot>> freed;
  const std::lock_guard lock(mutex_);
  freed.swap(slots_);
  bytes_ = 0;
  return !freed.empty();
}

}}}   // namespace millrace::detail

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

MILLRACE_INLINE int checked_ordinal(int ordinal) {
  const int count = count_gpus();
  if (ordinal >= 0 && ordinal < count) return ordinal;
  throw setup_error("the GPU does not exist: got cuda_device(" + std::to_string(ordinal) + "), and this process sees " +
                        std::to_string(count) + " GPUs",
                    "Devices are numbered from 0: see nvidia-smi and CUDA_VISIBLE_DEVICES");
}

MILLRACE_INLINE cuda_backend::cuda_backend(int ordinal, std::string sysfs)
    : gpu_(context_of(checked_ordinal(ordinal))),
      sysfs_(std::move(sysfs)),
      spare_(std::make_shared<spare_slot_memory>(max_spare_bytes)) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  name_ = "cuda:" + std::to_string(ordinal) + " (" + properties.name + ")";
  char address[32] = {};
  if (const cudaError_t result = cudaDeviceGetPCIBusId(address, sizeof address, ordinal); result == cudaSuccess)
    node_ = numa_node_of_pci_device(address, sysfs_);
  else ignore_cuda(result);   // all nodes are equally near in that case
  const auto attribute = [&](cudaDeviceAttr which, bool otherwise) {
    int value = 0;
    const cudaError_t result = cudaDeviceGetAttribute(&value, which, ordinal);
    ignore_cuda(result);
    return result == cudaSuccess ? value != 0 : otherwise;
  };
  registers_ = attribute(cudaDevAttrHostRegisterSupported, true) &&
               !attribute(cudaDevAttrPageableMemoryAccessUsesHostPageTables, false);
  make_copy_stream();
}

MILLRACE_INLINE cuda_backend::cuda_backend(const cuda_backend& other)
    : device_backend(other),
      gpu_(other.gpu_),
      sysfs_(other.sysfs_),
      name_(other.name_),
      node_(other.node_),
      registers_(other.registers_),
      spare_(other.spare_) {
  make_copy_stream();
}

MILLRACE_INLINE void cuda_backend::make_copy_stream() {
  const current_context here(gpu_);
  const capture_tolerant now;
  check_cuda(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  name_stream(copies_, "millrace copies");
}

MILLRACE_INLINE cuda_backend::~cuda_backend() {
  ignore_cuda_error(gpu_, [&] { return cudaStreamDestroy(copies_); });
}

MILLRACE_INLINE std::string cuda_backend::name() const {
  const std::lock_guard lock(mutex_);
  std::string of_slots;
  for (const auto& slot : slots_) {
    if (!slot->is_pinned()) return name_ + " with pageable host slots";
    if (node_ && of_slots.empty()) of_slots = " with host slots on NUMA node " + std::to_string(*node_);
    if (!slot->far_reason().empty())
      of_slots = " with host slots not bound to NUMA node " + std::to_string(*node_) + " (" + slot->far_reason() + ")";
  }
  const auto refused = std::find_if(slots_.begin(), slots_.end(), [](const auto& s) { return !s->refusal().empty(); });
  if (refused == slots_.end()) return name_ + of_slots;
  return name_ + (of_slots.empty() ? " with host slots" : of_slots) + " in small pages (" + (*refused)->refusal() + ")";
}

MILLRACE_INLINE std::string cuda_backend::warning() const {
  const std::lock_guard lock(mutex_);
  const auto pageable = std::find_if(slots_.begin(), slots_.end(), [](const auto& s) { return !s->is_pinned(); });
  if (pageable == slots_.end()) return {};
  return std::to_string((*pageable)->bytes()) +
         " bytes of pinned memory could not be allocated: slots use pageable "
         "memory, so copies to " +
         name_ +
         " are slower and may wait for training steps. Lower prefetch({.batches}) or "
         "the batch size, or raise the memory limit of the container";
}

MILLRACE_INLINE std::vector<unsigned> cuda_backend::near_cores() const {
  return node_ ? allowed_cores(cores_of_numa_node(*node_, sysfs_)) : std::vector<unsigned>{};
}

MILLRACE_INLINE void cuda_backend::enter_thread() {
  enter_context(gpu_);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;   // never restored, because Millrace owns the thread
  check_cuda(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
}

MILLRACE_INLINE void* cuda_backend::allocate_host(std::size_t bytes) {
  const pinned_place place{.gpu = gpu_, .node = node_, .near_cores = near_cores(), .registers = registers_};
  std::unique_ptr<pinned_slot> slot = spare_->reuse(bytes);
  if (!slot) slot = std::make_unique<pinned_slot>(bytes, place);
  if (!slot->is_pinned() && spare_->clear()) slot = std::make_unique<pinned_slot>(bytes, place);
  if (!slot->refusal().empty()) registers_ = false;   // this session does not try again
  const std::lock_guard lock(mutex_);
  slots_.push_back(std::move(slot));
  return slots_.back()->get();
}

MILLRACE_INLINE void cuda_backend::free_host(void* memory) noexcept {
  std::unique_ptr<pinned_slot> slot;
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(slots_.begin(), slots_.end(), [&](const auto& s) { return s->get() == memory; });
    slot = std::move(*at);
    slots_.erase(at);
  }
  if (finish_copies() && slot->is_pinned()) spare_->keep(std::move(slot));
}

MILLRACE_INLINE bool cuda_backend::finish_copies() noexcept {
  cudaError_t result = cudaSuccess;
  ignore_cuda_error(gpu_, [&] {
    result = cudaStreamQuery(copies_);
    if (result == cudaErrorNotReady) result = cudaStreamSynchronize(copies_);
    return result;
  });
  return result == cudaSuccess;
}

MILLRACE_INLINE void* cuda_backend::allocate_device(std::size_t bytes) {
  const current_context here(gpu_);
  const capture_tolerant now;
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, bytes), "cudaMalloc");
  return memory;
}

MILLRACE_INLINE void cuda_backend::free_device(void* memory) noexcept {
  finish_copies();   // one of them may have failed to record its event
  ignore_cuda_error(gpu_, [&] { return cudaFree(memory); });
}

MILLRACE_INLINE std::unique_ptr<device_event> cuda_backend::make_event() {
  return make_event(cudaEventDisableTiming | cudaEventBlockingSync);
}

/// In the legacy stream, every event is a barrier for all blocking streams of the process.
MILLRACE_INLINE std::unique_ptr<device_event> cuda_backend::make_timed_event(stream_view stream) {
  return named_stream(stream) == cudaStreamLegacy ? nullptr : make_event(cudaEventDefault);
}

MILLRACE_INLINE std::optional<std::uint64_t> cuda_backend::elapsed_ns(device_event& from, device_event& to) {
  const current_context here(gpu_);
  const capture_tolerant now;
  // cudaEventElapsedTime() is not intended for polling, and need not return errors of pending work.
  const cudaError_t reached = cudaEventQuery(handle(to));
  if (reached == cudaErrorNotReady) {
    ignore_cuda(reached);
    return {};
  }
  check_cuda(reached, "cudaEventQuery");
  float ms = 0;
  check_cuda(cudaEventElapsedTime(&ms, handle(from), handle(to)), "cudaEventElapsedTime");
  return static_cast<std::uint64_t>(1e6 * static_cast<double>(std::max(ms, 0.0F)));
}

MILLRACE_INLINE void cuda_backend::copy_waits_for(device_event& mark) {
  const current_context here(gpu_);
  check_cuda(cudaStreamWaitEvent(copies_, handle(mark), 0), "cudaStreamWaitEvent");
}

MILLRACE_INLINE void cuda_backend::copy_to_device(void* to, const void* from, std::size_t bytes) {
  const current_context here(gpu_);
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, copies_), "cudaMemcpyAsync");
}

MILLRACE_INLINE void cuda_backend::record_copy(device_event& mark) {
  const current_context here(gpu_);
  check_cuda(cudaEventRecord(handle(mark), copies_), "cudaEventRecord");
}

MILLRACE_INLINE void cuda_backend::check_stream(stream_view stream) {
  check_default_stream(stream, gpu_);
  const current_context here(gpu_);
  if (is_capturing(stream))
    throw setup_error(
        "a batch was requested while its stream was being captured",
        "Get the batch before cudaStreamBeginCapture, and release it after cudaStreamEndCapture. With "
        "to_device({.fixed_slots = true}), you can launch the captured graph again for later batches in the same slot");
}

MILLRACE_INLINE void cuda_backend::check_owner(stream_view stream, device_event& mark) {
  // The default streams are those of the current device. Recording in the legacy stream would be a barrier.
  if (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread) return;
  const current_context here(gpu_);
  const capture_tolerant now;
  if (is_capturing(stream)) return;
  const cudaError_t result = cudaEventRecord(handle(mark), stream);
  if (result != cudaErrorInvalidResourceHandle) return check_cuda(result, "cudaEventRecord");
  ignore_cuda(result);
  throw setup_error("the stream does not exist, or does not belong to " + name_ + " and its context",
                    "Create the stream after cudaSetDevice(" + std::to_string(gpu_.ordinal) +
                        "), or create the device while the context of the stream is current");
}

MILLRACE_INLINE void cuda_backend::record(device_event& mark, stream_view stream) {
  const current_context here(gpu_);
  // An event recorded during a capture is added to the graph, not to the stream. A stream that waits for it joins the
  // capture, and so would the copy stream.
  if (is_capturing(stream))
    throw setup_error("a batch was released while its stream was being captured",
                      "Release the batch after cudaStreamEndCapture, or before cudaStreamBeginCapture");
  check_cuda(cudaEventRecord(handle(mark), named_stream(stream)), "cudaEventRecord");
}

MILLRACE_INLINE void cuda_backend::stream_waits_for(stream_view stream, device_event& mark) {
  const current_context here(gpu_);
  check_cuda(cudaStreamWaitEvent(named_stream(stream), handle(mark), 0), "cudaStreamWaitEvent");
}

MILLRACE_INLINE void cuda_backend::wait(device_event& mark) {
  const current_context here(gpu_);
  const capture_tolerant now;
  check_cuda(cudaEventSynchronize(handle(mark)), "cudaEventSynchronize");
}

MILLRACE_INLINE void cuda_backend::copy_to_host(void* to, const void* from, std::size_t bytes, stream_view after) {
  check_stream(after);
  const current_context here(gpu_);
  const capture_tolerant now;   // must not invalidate a capture of another stream
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, named_stream(after)), "cudaMemcpyAsync");
  check_cuda(cudaStreamSynchronize(named_stream(after)), "cudaStreamSynchronize");
}

MILLRACE_INLINE std::unique_ptr<device_event> cuda_backend::make_event(unsigned flags) {
  const current_context here(gpu_);
  auto result = std::make_unique<event>();
  result->gpu = gpu_;
  check_cuda(cudaEventCreateWithFlags(&result->handle, flags), "cudaEventCreateWithFlags");
  return result;
}

MILLRACE_INLINE cuda_backend::event::~event() {
  if (handle) ignore_cuda_error(gpu, [this] { return cudaEventDestroy(handle); });
}

}   // namespace detail

}}   // namespace millrace
