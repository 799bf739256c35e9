// Defines what scalar.hpp declares.
#pragma once

#include <millrace/item/tensor/scalar.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/item/record.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::string excerpt_of(const bytes& field) {
  constexpr std::size_t max_characters = 40;
  const std::string_view all = field.text();
  std::string shown = printable(all.substr(0, max_characters));
  const bool cut = all.size() > max_characters || shown.size() > max_characters;
  shown.resize(std::min(shown.size(), max_characters));
  return "\"" + shown + (cut ? "\"..." : "\"") + " (" + std::to_string(all.size()) + " bytes)";
}

MILLRACE_INLINE void throw_no_scalar(const bytes& field, std::string_view problem, std::string hint) {
  const std::string name = field.name().empty() ? "the text" : "the field '" + printable(field.name()) + "'";
  throw data_error(name + std::string(problem) + ": " + excerpt_of(field), std::move(hint), location_of(field));
}

MILLRACE_INLINE std::string_view without_blanks(std::string_view text) noexcept {
  constexpr std::string_view blanks = " \t\n\v\f\r";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

MILLRACE_INLINE std::size_t take_digits(std::string_view& text) noexcept {
  std::size_t digits = 0, at = 0;
  while (at < text.size()) {
    if (is_digit(text[at])) ++digits;
    else if (text[at] != '_' || digits == 0 || at + 1 == text.size() || !is_digit(text[at + 1])) break;
    ++at;
  }
  text.remove_prefix(at);
  return digits;
}

MILLRACE_INLINE bool take_sign(std::string_view& text) noexcept {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  return negative;
}

MILLRACE_INLINE bool equal_ignoring_case(std::string_view text, std::string_view word) noexcept {
  if (text.size() != word.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] - 'A' + 'a') : text[i]) != word[i]) return false;
  return true;
}

MILLRACE_INLINE decimal scan_decimal(std::string_view text) noexcept {
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

MILLRACE_INLINE std::string text(const bytes& field) {
  if (!detail::is_utf8(field.text()))
    detail::throw_no_scalar(field, " is not valid UTF-8", "Convert the data set's text to UTF-8");
  return std::string(field.text());
}

}}  // namespace millrace
