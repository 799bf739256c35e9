// Allocates host memory whose pages are on one NUMA node while that node has free memory.
//
//   mr::detail::node_memory slot(38'535'168, 1);          // bytes and node; std::bad_alloc; zeros, page-aligned
//   if (slot.error() == 0) fill(slot.get());              // else errno of mbind: the pages may be anywhere
//
// The kernel allocates a page on the first access. Therefore the constructor sets the node before anything accesses or
// pins the pages. Memory from malloc() is unsuitable, because its pages may have been accessed already. The node is
// only a preference (MPOL_PREFERRED), because a full node must not end a run. Huge pages are requested as in
// slot_memory.hpp.
// Threads: any. Lifetime: the destructor frees the memory.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Memory near one NUMA node. Movable.
class node_memory {
 public:
  node_memory(std::size_t bytes, unsigned node);
  node_memory(node_memory&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_), error_(other.error_) {}
  node_memory& operator=(node_memory&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    std::swap(error_, other.error_);
    return *this;
  }
  ~node_memory();

  /// Returns the first byte.
  void* get() const noexcept { return memory_; }
  /// Returns 0 if the requested node is set, otherwise the errno of mbind; then the pages may be on any node.
  int error() const noexcept { return error_; }
  /// Accesses all pages from the specified cores, so that they are on the node of these cores. Containers allow this
  /// even if they forbid mbind. Returns false without an access if the thread may not run on any of the cores.
  bool touch_on(const std::vector<unsigned>& cores) noexcept;

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;   // mapped
  int error_ = 0;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/device/impl/node_memory.inl>
#endif
