// Memory for slots that lie on the host: large ones in huge pages, where the system gives some on request.
//
//   void* slot = detail::allocate_slot(38'535'168);   // std::bad_alloc; at a multiple of 4096 bytes or more
//   detail::free_slot(slot);
//
// A row is written once and read once, a page of 4 KiB after the other; with each comes a walk through the page tables,
// which in a virtual machine are two. No memory beside the slot's own is taken: huge pages are asked for only for what
// is whole ones of it. But all of that becomes resident, also where rows of a ragged column leave gaps. Linux, where
// /sys/kernel/mm/transparent_hugepage/enabled says "madvise" or "always"; elsewhere pages are what they are.
// Threads: any.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdlib>
#include <new>

#include <sys/mman.h>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline constexpr std::size_t slot_alignment_bytes = 4096;
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;   // x86-64, and aarch64 with pages of 4 KiB

inline void* allocate_slot(std::size_t bytes) {
  const bool large = bytes >= huge_page_bytes;
  void* memory = nullptr;
  if (::posix_memalign(&memory, large ? huge_page_bytes : slot_alignment_bytes, bytes) != 0) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  // A wish: where it is not granted, nothing changes.
  if (large) static_cast<void>(::madvise(memory, bytes / huge_page_bytes * huge_page_bytes, MADV_HUGEPAGE));
#endif
  return memory;
}

inline void free_slot(void* memory) noexcept { std::free(memory); }

}}}  // namespace millrace::detail
