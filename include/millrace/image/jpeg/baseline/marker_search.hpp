// Finds markers in entropy-coded bytes without decoding them.
//
//   const std::uint8_t* at = mr::detail::find_marker(from, file_end);         // returns file_end without a marker
//   const std::uint8_t* begin = mr::detail::find_restart(from, file_end, 2, 6);   // after RST2 to 5; null if damaged
//
// Errors: none. Threads: pure functions. Source: ITU-T T.81 B.1.1.2 and B.2.1.
#pragma once

#include <millrace/simd/byte_marks.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the first 0xff that is followed by a byte other than 0, or `end`.
inline const std::uint8_t* find_marker(const std::uint8_t* from, const std::uint8_t* end) noexcept {
  constexpr std::ptrdiff_t chunk_bytes = 32;
  const auto markers_in = [](const std::uint8_t* at) {
    return equal_bytes(load_16(at), 0xff) & ~equal_bytes(load_16(at + 1), 0);
  };
  for (; end - from > chunk_bytes; from += chunk_bytes) {
    const bytes_16 low = markers_in(from), high = markers_in(from + 16);
    if (any_marked(low | high)) return from + first_marked(low, high);
  }
  while (end - from > 1) {
    from = static_cast<const std::uint8_t*>(std::memchr(from, 0xff, static_cast<std::size_t>(end - from - 1)));
    if (from == nullptr) return end;
    if (from[1] != 0) return from;
    from += 2;
  }
  return end;
}

/// Returns the first byte of restart interval `last`. The search begins at `from`, a byte of interval `first`. Returns
/// null if a marker between them is missing or has a wrong number.
inline const std::uint8_t* find_restart(const std::uint8_t* from, const std::uint8_t* end, unsigned first,
                                        unsigned last) noexcept {
  for (; first < last; ++first) {
    from = find_marker(from, end);
    if (from == end || from[1] != 0xd0 + first % 8) return nullptr;
    from += 2;
  }
  return from;
}

}}}  // namespace millrace::detail
