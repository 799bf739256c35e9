// Definitions for node_memory.hpp.
#pragma once

#include <millrace/device/node_memory.hpp>

#include <millrace/base/machine.hpp>
#include <millrace/base/numa.hpp>
#include <millrace/device/slot_memory.hpp>
#include <millrace/sync/start_thread.hpp>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <new>
#include <thread>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Sets the preferred node of pages by the system call mbind. Returns errno, or 0.
MILLRACE_INLINE int prefer_numa_node([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes,
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

/// Some kernels have pages of 64 KiB, and munmap() accepts complete pages only.
MILLRACE_INLINE std::size_t page_bytes() noexcept {
  return std::max(slot_alignment_bytes, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
}

MILLRACE_INLINE std::size_t node_memory::mapped_bytes(std::size_t bytes) noexcept {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

MILLRACE_INLINE node_memory::node_memory(std::size_t bytes, std::optional<unsigned> node)
    : bytes_(mapped_bytes(bytes)), process_(::getpid()) {
  const bool large = bytes >= huge_page_bytes;
  const std::size_t alignment = large ? huge_page_bytes : page_bytes();
  // Unmaps the space before the alignment boundary and after the end.
  const std::size_t mapped = bytes_ + alignment;
  void* const all = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  char* const first = static_cast<char*>(all);
  const std::size_t before = (alignment - reinterpret_cast<std::uintptr_t>(all) % alignment) % alignment;
  if (before > 0) ::munmap(first, before);
  ::munmap(first + before + bytes_, mapped - before - bytes_);
  memory_ = first + before;
#ifdef MADV_HUGEPAGE
  if (large) static_cast<void>(::madvise(memory_, bytes / huge_page_bytes * huge_page_bytes, MADV_HUGEPAGE));
#endif
#ifdef MADV_DONTFORK
  static_cast<void>(::madvise(memory_, bytes_, MADV_DONTFORK));
#endif
  if (node) error_ = prefer_numa_node(memory_, bytes_, *node);
}

MILLRACE_INLINE bool node_memory::touch(const std::vector<unsigned>& cores) {
  constexpr std::size_t thread_bytes = std::size_t{8} << 20, max_threads = 8;
  std::size_t threads = 1;
  if (bytes_ >= 2 * thread_bytes) {
    const std::size_t core_count = cores.empty() ? usable_cores() : cores.size();
    threads = std::min({bytes_ / thread_bytes, core_count, max_threads});
  }
  const std::size_t share = (bytes_ / threads + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
  std::atomic<bool> bound{true};
  const auto touch_share = [&](std::size_t number) {
    const core_scope here(cores);
    if (!here.is_bound()) bound = false;
    const std::size_t end = std::min(bytes_, (number + 1) * share);
    for (std::size_t at = number * share; at < end; at += slot_alignment_bytes)
      static_cast<volatile char*>(memory_)[at] = 0;
  };
  std::vector<std::thread> helpers;
  try {
    start_threads(helpers, threads - 1, [&](std::size_t i) { touch_share(i + 1); });
  } catch (const std::exception&) {
    // This thread then touches the shares of the threads that the system refused to start.
  }
  touch_share(0);
  for (std::size_t number = helpers.size() + 1; number < threads; ++number) touch_share(number);
  for (std::thread& helper : helpers) helper.join();
  return bound;
}

MILLRACE_INLINE node_memory::~node_memory() {
  if (process_ == ::getpid()) ::munmap(memory_, bytes_);
}

}}}   // namespace millrace::detail
