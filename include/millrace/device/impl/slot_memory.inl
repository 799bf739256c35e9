// Defines what slot_memory.hpp declares.
#pragma once

#include <millrace/device/slot_memory.hpp>

#include <sys/mman.h>

#include <new>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void* allocate_slot(std::size_t bytes) {
  const bool large = bytes >= huge_page_bytes;
  void* memory = nullptr;
  if (::posix_memalign(&memory, large ? huge_page_bytes : slot_alignment_bytes, bytes) != 0) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  // The kernel may ignore this request; the memory is valid either way.
  if (large) static_cast<void>(::madvise(memory, bytes / huge_page_bytes * huge_page_bytes, MADV_HUGEPAGE));
#endif
  return memory;
}

}}}  // namespace millrace::detail
