// Allocates memory for host slots; a slot is the memory of a batch. Large slots use huge pages if the system has them.
//
//   void* slot = mr::detail::allocate_slot(38'535'168);   // aligned to 4096 bytes or more; throws std::bad_alloc
//   mr::detail::free_slot(slot);
//
// Huge pages need fewer walks through the page tables. Huge pages are requested only for the part of a slot that
// consists of complete huge pages. Therefore the slot uses no more memory than its size.
// Huge pages require Linux with "madvise" or "always" selected in /sys/kernel/mm/transparent_hugepage/enabled.
// Elsewhere the slots use normal pages.
// Threads: any.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdlib>
#include <new>

#include <sys/mman.h>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline constexpr std::size_t slot_alignment_bytes = 4096;
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;   // on x86-64, and on aarch64 with pages of 4 KiB

inline void* allocate_slot(std::size_t bytes) {
  const bool large = bytes >= huge_page_bytes;
  void* memory = nullptr;
  if (::posix_memalign(&memory, large ? huge_page_bytes : slot_alignment_bytes, bytes) != 0) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  // The kernel may ignore this request; the memory is valid either way.
  if (large) static_cast<void>(::madvise(memory, bytes / huge_page_bytes * huge_page_bytes, MADV_HUGEPAGE));
#endif
  return memory;
}

inline void free_slot(void* memory) noexcept { std::free(memory); }

}}}   // namespace millrace::detail
