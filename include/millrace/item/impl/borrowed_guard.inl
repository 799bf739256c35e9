// Definitions for borrowed_guard.hpp.
#pragma once

#include <millrace/item/borrowed_guard.hpp>

#include <millrace/base/digest.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#if defined(__linux__)
// This function is null without AddressSanitizer. The program may use AddressSanitizer even if the compiled library
// does not.
extern "C" __attribute__((weak)) void* __asan_region_is_poisoned(void* begin, std::size_t bytes);
#endif

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::uint64_t borrowed_guard::checksum_of(const bytes& data) noexcept {
  constexpr std::size_t part = 64;
  const std::span<const std::byte> all = data;
  const std::size_t count = std::min(part, all.size());
  std::uint64_t sum = all.size();
  for (const std::size_t at : {std::size_t{0}, (all.size() - count) / 2, all.size() - count})
    sum = digest_bytes(all.subspan(at, count), sum);
  return std::max<std::uint64_t>(sum, 1);
}

/// Returns whether the pages of the first, the middle and the last bytes exist.
MILLRACE_INLINE bool is_mapped(std::span<const std::byte> data) noexcept {
#if defined(__linux__)
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (const std::size_t at : {std::size_t{0}, data.size() / 2, data.size() - 1}) {
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(data.data() + at) / page * page;
    unsigned char resident;
    if (::mincore(reinterpret_cast<void*>(begin), 1, &resident) != 0 && errno == ENOMEM) return false;
  }
#endif
  return static_cast<bool>(data.data());
}

MILLRACE_INLINE void borrowed_guard::check_borrowed(const bytes& data, const char* name,
                                                    const error_location& where) const {
  bool is_freed = !is_mapped(data);
#if defined(__linux__)
  if (!is_freed && &__asan_region_is_poisoned != nullptr)
    is_freed = __asan_region_is_poisoned(const_cast<std::byte*>(data.data()), data.size()) != nullptr;
#endif
  if (!is_freed && checksum_of(data) == checksum_) return;
  throw setup_error(std::string("the bytes of ") + name + (is_freed ? " were freed" : " changed") +
                        " before it was decoded: bytes::borrowed() does not keep memory alive, and images are decoded "
                        "after the callable in map() has returned",
                    "Pass bytes that own their memory: mr::bytes::owned(text), or mr::read_file(path)", where);
}

}}}   // namespace millrace::detail
