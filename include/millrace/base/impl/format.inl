// Definitions for format.hpp.
#pragma once

#include <millrace/base/format.hpp>

#include <charconv>
#include <cstdint>
#include <limits>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::string fixed(double value, int digits) {
  char text[400];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, digits);
  return {text, end.ptr};
}

MILLRACE_INLINE std::string three_digits(double value) {
  const double size = value < 0 ? -value : value;
  return fixed(value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

MILLRACE_INLINE std::string grouped(double value) {
  const std::string digits = fixed(value, 0);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-') text += ' ';
    text += digits[i];
  }
  return text;
}

MILLRACE_INLINE std::string times_as_fast(double ratio) {
  if (ratio > 100 || ratio == std::numeric_limits<double>::infinity()) return "over 100 times as fast";
  return fixed(ratio, ratio < 9.95 ? 1 : 0) + " times as fast";
}

MILLRACE_INLINE std::string time_text(double ns) { return in_units<4>(ns, {"ns", "us", "ms", "s"}, 1000); }

MILLRACE_INLINE std::string bytes_text(double bytes) { return in_units<5>(bytes, {"B", "kB", "MB", "GB", "TB"}, 1000); }

}}}   // namespace millrace::detail
