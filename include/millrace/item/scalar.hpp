// Reads numbers from fields and other texts, with the syntax of Python's int() and float().
//
//   auto label = r["cls"].as<std::int32_t>();             // "7", " +7\n", "007", "1_000"
//   auto score = r["score"].as<float>();                  // "0.5", ".5", "5.", "1e-3", "-inf", "nan"
//   auto number = mr::integer<int>(r.key());              // of any other text: a std::string_view, a std::string
//
// White space is ASCII (blank, \t \n \v \f \r) and allowed only around the number. Digits are ASCII digits; an
// underscore is allowed between two digits. Nothing depends on the locale. A real that is too small for T becomes the
// nearest number, as in Python. Unlike in Python, a real that is too large is an error. An integer that does not fit
// into T is an error too.
// Errors: data_error with an excerpt of the text. For a field, the error has the name of the field, the shard and the
// key. Threads: the functions are pure; any thread may call them.
#pragma once

#include <millrace/base/version.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Types that integer() returns.
template <class T>
concept integer_scalar = std::integral<T> && !std::same_as<T, bool> && sizeof(T) <= 8;
/// Types that real() returns.
template <class T>
concept real_scalar = std::same_as<T, float> || std::same_as<T, double>;

/// Throws data_error for a text that is not a value of the expected kind. `field` is the name of the field, or empty
/// for other texts.
[[noreturn]] void throw_no_scalar(std::string_view text, std::string_view field, std::string_view problem,
                                  std::string hint);

/// Returns the integer in a text, modulo 2^64. `field` is used in errors (see throw_no_scalar()).
std::uint64_t parse_integer(std::string_view text, std::string_view field, std::int64_t lowest, std::uint64_t largest);

/// Reads the real number in a text. `field` is used in errors (see throw_no_scalar()).
void parse_real(std::string_view text, std::string_view field, float& value);
void parse_real(std::string_view text, std::string_view field, double& value);

/// Returns the number in a text. `field` is used in errors (see throw_no_scalar()).
template <class T>
  requires(integer_scalar<T> || real_scalar<T>)
T parse_scalar(std::string_view text, std::string_view field = {}) {
  if constexpr (integer_scalar<T>) {
    using limits = std::numeric_limits<T>;
    return static_cast<T>(parse_integer(text, field, static_cast<std::int64_t>(limits::min()),
                                        static_cast<std::uint64_t>(limits::max())));
  } else {
    T value = 0;
    parse_real(text, field, value);
    return value;
  }
}

}   // namespace detail

/// Returns the integer in a text, such as a key. Throws data_error if it is not an integer or does not fit into T.
template <detail::integer_scalar T>
T integer(std::string_view text) {
  return detail::parse_scalar<T>(text);
}
/// Returns the real number in a text, correctly rounded. Throws data_error if it is not a number or too large for T.
template <detail::real_scalar T>
T real(std::string_view text) {
  return detail::parse_scalar<T>(text);
}

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/item/impl/scalar.inl>
#endif
