// Formats numbers for human readers, with few digits and a suitable unit.
//
//   mr::detail::percent(0.384);          // "38.4 %"
//   mr::detail::gain_text(0.067);        // "+6.7 %"
//   mr::detail::grouped(21'400);         // "21 400"
//   mr::detail::time_text(1.88e6);       // "1.88 ms"
//   mr::detail::bytes_text(6.79e8);      // "679 MB"
//   mr::detail::times_as_fast(6.87);     // "6.9 times as fast"
//
// A space separates thousands; byte units are powers of ten. The locale has no effect. Errors: none. Threads: the
// functions are pure; any thread may call them.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

std::string fixed(double value, int digits);

/// Formats with three significant digits.
std::string three_digits(double value);

std::string grouped(double value);

inline std::string percent(double share) { return fixed(100 * share, 1) + " %"; }
inline std::string gain_text(double gain) { return std::string(gain >= 0 ? "+" : "").append(percent(gain)); }
std::string times_as_fast(double ratio);

/// Formats a number in the largest unit in which its rounded value is at least 1.
template <std::size_t n>
MILLRACE_RARE std::string in_units(double value, const std::array<const char*, n>& units, double step) {
  std::size_t i = 0;
  for (; i + 1 < n && value >= 0.9995 * step; ++i) value /= step;
  return three_digits(value) + " " + units[i];
}
std::string time_text(double ns);
std::string bytes_text(double bytes);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/base/impl/format.inl>
#endif
