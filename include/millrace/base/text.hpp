// Converts a text to a span of its bytes, for functions that accept bytes.
//
//   mr::crc32c(mr::detail::bytes_of(text));
//
// bytes_of() compiles faster than std::as_bytes(std::span(text)). Errors: none. Threads: any thread. Lifetime: the
// bytes are valid as long as the text.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Determines how much of a text is well-formed UTF-8 (The Unicode Standard 15, table 3-7), which excludes overlong
// forms and surrogates.
//
//   millrace::detail::is_utf8(text);
//   std::size_t good = millrace::detail::utf8_prefix_bytes(text);    // text.size() if all of it is well-formed
//   millrace::detail::clean_utf8(text);                              // replaces malformed bytes by U+FFFD
//
// The functions check eight bytes at a time, so that the check of ASCII text is fast. Errors: none. Threads: the
// functions are pure; any thread may call them.

/// Sorts `names` from index `first` on. All lists of names share this function, because std::sort of strings is 7 KB of
/// code.
void sort_texts(std::vector<std::string>& names, std::size_t first = 0);

/// Returns the length of the UTF-8 sequence in `word`: 2 to 4 bytes. Returns 0 for a malformed sequence and for a
/// single ASCII byte. The first byte of the sequence is the lowest byte of `word`.
constexpr std::size_t utf8_sequence_bytes(std::uint32_t word) noexcept {
  if ((word & 0xc0e0) == 0x80c0) return (word & 0xff) >= 0xc2 ? 2 : 0;
  if ((word & 0xc0c0f0) == 0x8080e0) {
    const std::uint32_t code = (word & 0x0f) << 12 | (word >> 2 & 0xfc0) | (word >> 16 & 0x3f);
    return code >= 0x800 && code >> 11 != 0x1b ? 3 : 0;
  }
  if ((word & 0xc0c0c0f8) == 0x808080f0) {
    const std::uint32_t high = (word & 0x07) << 6 | (word >> 8 & 0x3f);   // bits 12 and up of the code point
    return high >= 0x10 && high < 0x110 ? 4 : 0;
  }
  return 0;
}

/// Returns the length of the longest well-formed prefix, in bytes.
std::size_t utf8_prefix_bytes(std::string_view text) noexcept;

inline bool is_utf8(std::string_view text) noexcept { return utf8_prefix_bytes(text) == text.size(); }

/// Writes U+FFFD in place of each byte that is not part of a well-formed sequence. Does not change well-formed text.
void clean_utf8(std::string& text);

/// Returns the value of a text that consists of decimal digits. For any other text, and if the value exceeds 64 bits,
/// returns an empty optional.
std::optional<std::uint64_t> decimal_number(std::string_view text) noexcept;

inline std::span<const std::byte> bytes_of(std::string_view text) noexcept {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Formats a number with hexadecimal digits.
//
//   std::string name = "train-" + mr::detail::hex(digest, 16);     // "train-00c0ffee00c0ffee"
//
// The highest digit is first. If the number has more digits than requested, the highest digits are omitted. Errors:
// none. Threads: the functions are pure; any thread may call them.

/// Returns the lowest `digits` hexadecimal digits of `value`.
inline std::string hex(std::uint64_t value, std::size_t digits) {
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/base/impl/text.inl>
#endif
