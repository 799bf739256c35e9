// Reads numbers and text from the bytes of a field, exactly as Python's int(), float() and decode() accept them.
//
//   auto label = mr::integer<std::int32_t>(r["cls"]);     // "7", " +7\n", "007", "1_000"
//   auto score = mr::real<float>(r["score"]);             // "0.5", ".5", "5.", "1e-3", "-inf", "nan"
//   std::string caption = mr::text(r["txt"]);             // UTF-8
//
// White space is ASCII (blank, \t \n \v \f \r) and allowed only around the number. Digits are ASCII digits; an
// underscore is allowed between two digits. Nothing depends on the locale. A real that is too small for T becomes the
// nearest number, as in Python. Unlike in Python, a real that is too large is an error. An integer that T cannot hold
// is an error too.
// Errors: data_error with field, shard, key and an excerpt. Threads: no shared state.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/item/record.hpp>

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
inline std::string excerpt_of(const bytes& field) {
  constexpr std::size_t max_characters = 40;
  const std::string_view all = field.text();
  std::string shown = printable(all.substr(0, max_characters));
  const bool cut = all.size() > max_characters || shown.size() > max_characters;
  shown.resize(std::min(shown.size(), max_characters));
  return "\"" + shown + (cut ? "\"..." : "\"") + " (" + std::to_string(all.size()) + " bytes)";
}

[[noreturn]] inline void throw_no_scalar(const bytes& field, std::string_view problem, std::string hint) {
  const std::string name = field.name().empty() ? "the bytes" : "the field '" + printable(field.name()) + "'";
  throw data_error(name + std::string(problem) + ": " + excerpt_of(field), std::move(hint), location_of(field));
}

inline std::string_view without_blanks(std::string_view text) noexcept {
  constexpr std::string_view blanks = " \t\n\v\f\r";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Removes digits with single underscores between them from the front of `text`; returns the number of digits.
inline std::size_t take_digits(std::string_view& text) noexcept {
  std::size_t digits = 0, at = 0;
  while (at < text.size()) {
    if (is_digit(text[at])) ++digits;
    else if (text[at] != '_' || digits == 0 || at + 1 == text.size() || !is_digit(text[at + 1])) break;
    ++at;
  }
  text.remove_prefix(at);
  return digits;
}

inline bool take_sign(std::string_view& text) noexcept {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  return negative;
}

/// Returns true if the texts are equal; `word` is lower case.
inline bool equal_ignoring_case(std::string_view text, std::string_view word) noexcept {
  if (text.size() != word.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] - 'A' + 'a') : text[i]) != word[i]) return false;
  return true;
}

/// Digits with an optional point and exponent. `below_one` tells too small ("1e-400", accepted) from too large
/// ("1e400").
struct decimal {
  bool valid = false;
  bool below_one = false;   ///< the first digit that is not 0 is behind the point
};
inline decimal scan_decimal(std::string_view text) noexcept {
  const std::string_view all = text;
  std::size_t digits = take_digits(text);
  const std::string_view whole = all.substr(0, all.size() - text.size());
  std::string_view fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const std::string_view from = text;
    digits += take_digits(text);
    fraction = from.substr(0, from.size() - text.size());
  }
  if (digits == 0) return {};
  bool exponent_negative = false;
  std::int64_t exponent = 0;
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    exponent_negative = take_sign(text);
    const std::string_view from = text;
    if (take_digits(text) == 0) return {};
    constexpr std::int64_t enough = std::numeric_limits<std::int64_t>::max() / 100;
    for (const char c : from.substr(0, from.size() - text.size()))
      if (c != '_' && exponent < enough) exponent = exponent * 10 + (c - '0');
  }
  if (!text.empty()) return {};
  // The position of the first digit that is not 0, counted from the decimal point.
  std::int64_t magnitude = 0;
  bool nonzero_seen = false;
  for (const char c : whole) {
    nonzero_seen = nonzero_seen || (c != '0' && c != '_');
    magnitude += nonzero_seen && c != '_';
  }
  for (const char c : fraction) {
    if (nonzero_seen || (c != '0' && c != '_')) break;
    magnitude -= c != '_';
  }
  return {.valid = true, .below_one = (exponent_negative ? magnitude - exponent : magnitude + exponent) <= 0};
}

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

/// Returns the text in `field`. Throws data_error if it is not UTF-8.
inline std::string text(const bytes& field) {
  if (!detail::is_utf8(field.text()))
    detail::throw_no_scalar(field, " is not valid UTF-8", "Convert the data set's text to UTF-8");
  return std::string(field.text());
}

}}  // namespace millrace
