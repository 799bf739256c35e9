// Allocates the host slots of a GPU in pinned memory, and keeps free slots for the next session.
//
//   mr::detail::spare_slots spare(std::size_t{1} << 30);          // keeps at most 1 GiB
//   auto slot = spare.reuse(38'535'168);                          // a slot of this size, or null
//   if (!slot) slot = std::make_unique<mr::detail::pinned_slot>(38'535'168, place);
//   spare.keep(std::move(slot));                                  // no copy may use the slot any more
//
// A slot (the memory of a batch) is system memory in huge pages. Threads on cores near the GPU touch the pages first,
// so that the pages are near the GPU. Then CUDA registers the pages, which pins them. If registering fails,
// cudaHostAlloc() allocates the slot. If the GPU uses the page tables of the host (GH200), registering does not pin
// memory, and cudaHostAlloc() is always used. If cudaHostAlloc() fails, the slot is pageable.
// Errors: io_error from CUDA if the GPU cannot be used; std::bad_alloc. Threads: any; one thread at a time for a slot.
// Lifetime: the destructor of spare_slots frees the slots that it keeps.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/device/cuda_error.hpp>
#include <millrace/device/node_memory.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

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
  /// Returns the size in bytes: complete pages.
  std::size_t bytes() const noexcept { return bytes_; }
  /// Returns whether the memory is pinned.
  bool is_pinned() const noexcept { return from_ != source::system; }
  /// Returns the reason why the pages may be far from the GPU; empty if they are near.
  const std::string& far_reason() const noexcept { return far_reason_; }
  /// Returns the reason why CUDA could not register the memory; empty if no attempt failed.
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
class spare_slots {
 public:
  explicit spare_slots(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Removes a slot of this size from the spare slots and returns it. If no slot has this size, returns null, and frees
  /// the oldest slots until at least `bytes` bytes are freed.
  std::unique_ptr<pinned_slot> reuse(std::size_t bytes);
  /// Keeps a slot. If the spare slots exceed the maximum, frees the oldest slots.
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

#ifndef MILLRACE_COMPILED
#include <millrace/device/impl/cuda_slots.inl>
#endif
