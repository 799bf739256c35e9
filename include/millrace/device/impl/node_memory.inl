// Definitions for node_memory.hpp.
#pragma once

#include <millrace/device/node_memory.hpp>

#include <millrace/base/numa.hpp>
#include <millrace/device/slot_memory.hpp>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <new>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns errno, or 0. The C library has no function for this call; libnuma would be a dependency for it alone.
MILLRACE_INLINE int prefer_node([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes,
                                [[maybe_unused]] unsigned node) noexcept {
#ifdef SYS_mbind
  constexpr int preferred = 1;   // MPOL_PREFERRED of linux/mempolicy.h
  constexpr std::size_t word_bits = 8 * sizeof(unsigned long);
  std::array<unsigned long, 1'024 / word_bits> nodes{};
  if (node >= nodes.size() * word_bits) return EINVAL;
  nodes[node / word_bits] = 1UL << (node % word_bits);
  // The kernel reads one bit fewer than specified.
  return ::syscall(SYS_mbind, memory, bytes, preferred, nodes.data(), nodes.size() * word_bits + 1, 0) == 0 ? 0 : errno;
#else
  return ENOSYS;
#endif
}

MILLRACE_INLINE node_memory::node_memory(std::size_t bytes, unsigned node) {
  const bool large = bytes >= huge_page_bytes;
  // Some kernels have pages of 64 KiB, and munmap() accepts complete pages only.
  const std::size_t page_bytes = std::max(slot_alignment_bytes, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  const std::size_t alignment = large ? huge_page_bytes : page_bytes;
  const std::size_t rounded_bytes = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  // Unmaps the space before the alignment boundary and after the end.
  const std::size_t mapped = rounded_bytes + alignment;
  void* const all = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  char* const first = static_cast<char*>(all);
  const std::size_t before = (alignment - reinterpret_cast<std::uintptr_t>(all) % alignment) % alignment;
  if (before > 0) ::munmap(first, before);
  ::munmap(first + before + rounded_bytes, mapped - before - rounded_bytes);
  memory_ = first + before;
  bytes_ = rounded_bytes;
#ifdef MADV_HUGEPAGE
  if (large) static_cast<void>(::madvise(memory_, bytes / huge_page_bytes * huge_page_bytes, MADV_HUGEPAGE));
#endif
  error_ = prefer_node(memory_, rounded_bytes, node);
}

MILLRACE_INLINE bool node_memory::touch_on(const std::vector<unsigned>& cores) noexcept {
  const core_scope here(cores);
  if (!here.is_bound()) return false;
  for (std::size_t at = 0; at < bytes_; at += slot_alignment_bytes) static_cast<volatile char*>(memory_)[at] = 0;
  return true;
}

MILLRACE_INLINE node_memory::~node_memory() {
  if (memory_) ::munmap(memory_, bytes_);
}

}}}  // namespace millrace::detail
