// Formats figures for people: three or four significant digits and a fitting unit.
//
//   mr::detail::percent(0.384);          // "38.4 %"
//   mr::detail::gain_text(0.067);        // "+6.7 %"
//   mr::detail::whole(21'400);           // "21 400"
//   mr::detail::time_text(1.88e6);       // "1.88 ms"
//   mr::detail::bytes_text(6.79e8);      // "679 MB"
//   mr::detail::times_as_fast(6.87);     // "6.9 times as fast"
//
// A blank separates thousands; units of bytes are powers of ten. The locale has no effect. Errors: none. Threads: pure.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline std::string fixed(double value, int digits) {
  char text[400];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, digits);
  return {text, end.ptr};
}

/// Formats with three significant digits.
inline std::string three_digits(double value) {
  const double size = value < 0 ? -value : value;
  return fixed(value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

inline std::string whole(double value) {
  const std::string digits = fixed(value, 0);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-') text += ' ';
    text += digits[i];
  }
  return text;
}

inline std::string percent(double share) { return fixed(100 * share, 1) + " %"; }
inline std::string gain_text(double gain) { return std::string(gain >= 0 ? "+" : "").append(percent(gain)); }
inline std::string times_as_fast(double ratio) {
  if (ratio > 100 || ratio == std::numeric_limits<double>::infinity()) return "over 100 times as fast";
  return fixed(ratio, ratio < 9.95 ? 1 : 0) + " times as fast";
}

/// Formats in the largest unit in which the number is at least 1.
template <std::size_t n>
std::string in_units(double value, const std::array<const char*, n>& units, double step) {
  std::size_t i = 0;
  for (; i + 1 < n && value >= 0.9995 * step; ++i) value /= step;
  return three_digits(value) + " " + units[i];
}
inline std::string time_text(double ns) {
  return in_units<4>(ns, {"ns", "us", "ms", "s"}, 1000);
}
inline std::string bytes_text(double bytes) {
  return in_units<5>(bytes, {"B", "kB", "MB", "GB", "TB"}, 1000);
}

}}}  // namespace millrace::detail
