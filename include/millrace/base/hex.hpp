// Formats a number with hexadecimal digits.
//
//   std::string name = "train-" + mr::detail::hex(digest, 16);     // "train-00c0ffee00c0ffee"
//
// The highest digit is first. If the number has more digits than requested, the highest digits are omitted. Errors:
// none. Threads: the functions are pure; any thread may call them.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the lowest `digits` hexadecimal digits of `value`.
inline std::string hex(std::uint64_t value, std::size_t digits) {
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

}}}   // namespace millrace::detail
