// Maps host memory for pinned slots (the memory of batches): near one NUMA node, in huge pages, and not shared with
// forked processes.
//
//   mr::detail::node_memory slot(38'535'168, 1);          // zeroed bytes near NUMA node 1; throws std::bad_alloc
//   const bool bound = slot.touch(near_cores);            // allocates all pages
//   if (slot.error() == 0 || bound) fill(slot.get());     // otherwise, the pages may be on any node
//
// The kernel allocates a page on the first access. Therefore the constructor sets the node before anything accesses or
// pins the pages. The node is only a preference (MPOL_PREFERRED), because a full node must not end a run. Huge pages
// are requested as in slot_memory.hpp. Forked processes do not inherit the memory (MADV_DONTFORK). If they inherited
// the memory, the next write of this process could copy a page (copy-on-write). The GPU would still read the old page.
// Threads: any. Lifetime: the destructor frees the memory. In a forked process, the destructor does nothing, because
// the process does not have the memory.
// Cost: touch() writes zeros to all pages, on several threads for memory of 16 MiB or more.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Memory near one NUMA node.
class node_memory {
 public:
  /// Without a node, the pages are on the node of the thread that first accesses them.
  node_memory(std::size_t bytes, std::optional<unsigned> node);
  node_memory(const node_memory&) = delete;
  node_memory& operator=(const node_memory&) = delete;
  ~node_memory();

  /// Returns the first byte.
  void* get() const noexcept { return memory_; }
  /// Returns `bytes`, rounded up to complete pages.
  static std::size_t mapped_bytes(std::size_t bytes) noexcept;
  /// Returns 0 if mbind has set the node, or if no node was requested. Otherwise returns the errno of mbind, and the
  /// pages may be on any node.
  int error() const noexcept { return error_; }
  /// Accesses all pages, so that the kernel allocates them. The accessing threads are bound to the specified cores, so
  /// that the pages are on the node of these cores. Returns false if the threads cannot be bound.
  bool touch(const std::vector<unsigned>& cores);

 private:
  void* memory_ = nullptr;
  const std::size_t bytes_;
  int error_ = 0;
  const int process_;   // the process that owns the memory
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/device/impl/node_memory.inl>
#endif
