// Reads numbers and text from the bytes of a field, exactly as Python's int(), float() and decode() accept them.
//
//   auto label = mr::integer<std::int32_t>(r["cls"]);     // "7", " +7\n", "007", "1_000"
//   auto score = mr::real<float>(r["score"]);             // "0.5", ".5", "5.", "1e-3", "-inf", "nan"
//   std::string caption = mr::text(r["txt"]);             // UTF-8
//   auto number = mr::integer<int>(r.key());              // of any text: a std::string_view, a std::string
//
// White space is ASCII (blank, \t \n \v \f \r) and allowed only around the number. Digits are ASCII digits; an
// underscore is allowed between two digits. Nothing depends on the locale. A real that is too small for T becomes the
// nearest number, as in Python. Unlike in Python, a real that is too large is an error. An integer that T cannot hold
// is an error too.
// Errors: data_error with field, shard, key and an excerpt. Threads: no shared state.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/bytes.hpp>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Returns the beginning of the field's content and its size, safe to print: "7.5" (3 bytes).
std::string excerpt_of(const bytes& field);

[[noreturn]] void throw_no_scalar(const bytes& field, std::string_view problem, std::string hint);

std::string_view without_blanks(std::string_view text) noexcept;

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Removes digits with single underscores between them from the front of `text`; returns the number of digits.
std::size_t take_digits(std::string_view& text) noexcept;

bool take_sign(std::string_view& text) noexcept;

/// Returns true if the texts are equal; `word` is lower case.
bool equal_ignoring_case(std::string_view text, std::string_view word) noexcept;

/// Digits with an optional point and exponent. `below_one` tells too small ("1e-400", accepted) from too large
/// ("1e400").
struct decimal {
  bool valid = false;
  bool below_one = false;   ///< the first digit that is not 0 is behind the point
};
decimal scan_decimal(std::string_view text) noexcept;

}  // namespace detail

/// Returns the integer in `field`. Throws data_error if it is no integer or does not fit into T.
template <std::integral T>
  requires(!std::same_as<T, bool> && sizeof(T) <= 8)
T integer(const bytes& field) {
  std::string_view text = detail::without_blanks(field.text());
  const bool negative = detail::take_sign(text);
  const std::string_view digits = text;
  if (detail::take_digits(text) == 0 || !text.empty())
    detail::throw_no_scalar(field, " is not a valid integer", "Expected decimal digits, such as 7 or -12");
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  const std::uint64_t limit = !negative ? largest : std::signed_integral<T> ? largest + 1 : 0;
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (c == '_') continue;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > limit / 10 || value * 10 > limit - digit || digit > limit)
      detail::throw_no_scalar(field, " does not fit into the type asked for",
                              "Expected a value from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
                                  std::to_string(std::numeric_limits<T>::max()));
    value = value * 10 + digit;
  }
  return static_cast<T>(negative ? 0 - value : value);
}

/// Returns the real number in `field`, correctly rounded. Throws data_error if it is no number or too large for T.
template <std::floating_point T>
  requires(sizeof(T) <= 8)
T real(const bytes& field) {
  std::string_view text = detail::without_blanks(field.text());
  const bool negative = detail::take_sign(text);
  const auto with_sign = [negative](T value) { return negative ? -value : value; };
  if (detail::equal_ignoring_case(text, "nan")) return std::numeric_limits<T>::quiet_NaN();
  if (detail::equal_ignoring_case(text, "inf") || detail::equal_ignoring_case(text, "infinity"))
    return with_sign(std::numeric_limits<T>::infinity());
  const detail::decimal scanned = detail::scan_decimal(text);
  if (!scanned.valid)
    detail::throw_no_scalar(field, " is not a valid real number", "Expected a decimal number, such as 0.5, -3 or 1e-4");
  std::string cleaned;
  if (text.find('_') != std::string_view::npos) {
    for (const char c : text)
      if (c != '_') cleaned += c;
    text = cleaned;
  }
  T value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc::result_out_of_range) {
    if (!scanned.below_one)
      detail::throw_no_scalar(field, " is too large for the type asked for",
                              "The largest number is " + std::to_string(std::numeric_limits<T>::max()));
    value = 0;
  }
  return with_sign(value);
}

/// Returns the integer in a text, such as a key. Throws data_error as above.
template <std::integral T>
  requires(!std::same_as<T, bool> && sizeof(T) <= 8)
T integer(std::string_view text) {
  return integer<T>(bytes::borrowed(text));
}
/// Returns the real number in a text. Throws data_error as above.
template <std::floating_point T>
  requires(sizeof(T) <= 8)
T real(std::string_view text) {
  return real<T>(bytes::borrowed(text));
}

/// Returns the text in `field`. Throws data_error if it is not UTF-8.
std::string text(const bytes& field);

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/item/tensor/impl/scalar.inl>
#endif
