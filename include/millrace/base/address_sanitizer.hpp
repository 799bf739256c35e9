// Marks memory as accessible or inaccessible for AddressSanitizer. In builds without AddressSanitizer, both functions
// do nothing.
//
//   mr::detail::forbid_access(slot, bytes);     // from now on, each access is reported
//   mr::detail::allow_address_access(slot, bytes);      // call it before the memory is used again or freed
//
// Errors: none. Threads: the caller synchronizes access to the memory.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// From now on, AddressSanitizer reports each access to the bytes.
inline void forbid_access([[maybe_unused]] const void* data, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef ASAN_POISON_MEMORY_REGION
  ASAN_POISON_MEMORY_REGION(data, bytes);
#endif
}

/// Permits access to the bytes again.
inline void allow_address_access([[maybe_unused]] const void* data, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef ASAN_UNPOISON_MEMORY_REGION
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
#endif
}

}}}   // namespace millrace::detail
