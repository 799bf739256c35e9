// Definitions for cuda_slots.hpp.
#pragma once

#include <millrace/device/cuda_slots.hpp>

#include <millrace/base/numa.hpp>
#include <millrace/device/slot_memory.hpp>

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
  else quietly(gpu_, [&] { return pages_ ? cudaHostUnregister(memory_) : cudaFreeHost(memory_); });
}

MILLRACE_INLINE std::unique_ptr<pinned_slot> spare_slots::reuse(std::size_t bytes) {
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

MILLRACE_INLINE void spare_slots::keep(std::unique_ptr<pinned_slot> slot) noexcept {
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

MILLRACE_INLINE void spare_slots::free_first(std::size_t bytes, std::vector<std::unique_ptr<pinned_slot>>& freed) {
  std::size_t count = 0, sum = 0;
  while (count < slots_.size() && sum < bytes) sum += slots_[count++]->bytes();
  const auto end = slots_.begin() + static_cast<std::ptrdiff_t>(count);
  freed.reserve(count);
  std::move(slots_.begin(), end, std::back_inserter(freed));
  slots_.erase(slots_.begin(), end);
  bytes_ -= sum;
}

MILLRACE_INLINE bool spare_slots::clear() noexcept {
  std::vector<std::unique_ptr<pinned_slot>> freed;
  const std::lock_guard lock(mutex_);
  freed.swap(slots_);
  bytes_ = 0;
  return !freed.empty();
}

}}}   // namespace millrace::detail
