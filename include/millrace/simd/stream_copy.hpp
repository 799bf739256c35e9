// Copies bytes into memory that another core or a device reads later, such as the slot of a batch.
//
//   mr::detail::stream_copy(slot + offset, row.data(), row.size());
//
// On x86-64, large copies bypass the caches. A normal store first reads the old content of each cache line, which
// doubles the memory traffic. The written bytes are visible to threads that synchronize with this thread.
// Errors: none. Threads: any. Cost: if the destination is not in a cache, half of the time of std::memcpy().
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline constexpr std::size_t least_streamed_bytes = 4096;   // smaller copies use the caches

/// Copies `bytes` bytes from `from` to `to`. The two ranges must not overlap.
inline void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
#ifdef __x86_64__
  if (bytes >= least_streamed_bytes) {
    using vector [[gnu::vector_size(16)]] = long long;
    constexpr std::size_t line = 64;
    const std::size_t head = (line - reinterpret_cast<std::uintptr_t>(to) % line) % line;
    std::memcpy(to, from, head);
    to += head, from += head, bytes -= head;
    for (; bytes >= line; to += line, from += line, bytes -= line) {
      vector v[4];
      std::memcpy(v, from, line);
      for (std::size_t i = 0; i < 4; ++i)   // g++ and clang name the intrinsic function differently
        asm volatile("movntdq %1, %0" : "=m"(*reinterpret_cast<std::byte(*)[16]>(to + 16 * i)) : "x"(v[i]));
    }
    asm volatile("sfence" ::: "memory");
  }
#endif
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}}}   // namespace millrace::detail
