// Definitions for bytes.hpp.
#pragma once

#include <millrace/item/bytes.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/record.hpp>   // location_of()

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the beginning of a text and its size, safe to print: "7.5" (3 bytes).
MILLRACE_RARE std::string excerpt_of(std::string_view text) {
  constexpr std::size_t max_characters = 40;
  std::string text_shown = printable(text.substr(0, max_characters));
  const bool cut = text.size() > max_characters || text_shown.size() > max_characters;
  text_shown.resize(std::min(text_shown.size(), max_characters));
  return "\"" + text_shown + (cut ? "\"..." : "\"") + " (" + std::to_string(text.size()) + " bytes)";
}

MILLRACE_RARE void throw_no_scalar(std::string_view text, std::string_view field, std::string_view problem,
                                   std::string hint) {
  const std::string name = field.empty() ? "the text" : "the field '" + printable(field) + "'";
  throw data_error(name + std::string(problem) + ": " + excerpt_of(text), std::move(hint));
}

MILLRACE_INLINE std::string_view number_without_blanks(std::string_view text) noexcept {
  constexpr std::string_view blanks = " \t\n\v\f\r";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Removes the digits at the front of `text`, including single underscores between digits. Returns the number of
/// digits.
MILLRACE_INLINE std::size_t skip_field_digits(std::string_view& text) noexcept {
  std::size_t digits = 0, at = 0;
  while (at < text.size()) {
    if (is_digit(text[at])) ++digits;
    else if (text[at] != '_' || digits == 0 || at + 1 == text.size() || !is_digit(text[at + 1])) break;
    ++at;
  }
  text.remove_prefix(at);
  return digits;
}

MILLRACE_INLINE bool skip_number_sign(std::string_view& text) noexcept {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  return negative;
}

/// Returns true if the texts are equal; `word` is lower case.
MILLRACE_INLINE bool bytes_equal_ignoring_case(std::string_view text, std::string_view word) noexcept {
  if (text.size() != word.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] - 'A' + 'a') : text[i]) != word[i]) return false;
  return true;
}

/// A text of digits with an optional point and exponent. `below_one` is used for a number that its type cannot
/// represent: "1e-400" is too small and accepted, but "1e400" is too large and an error.
struct decimal {
  bool valid = false;
  bool below_one = false;   ///< the first nonzero digit is after the point
};

MILLRACE_INLINE decimal scan_decimal_number(std::string_view text) noexcept {
  const std::string_view all = text;
  std::size_t digits = skip_field_digits(text);
  const std::string_view integer_part = all.substr(0, all.size() - text.size());
  std::string_view fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const std::string_view from = text;
    digits += skip_field_digits(text);
    fraction = from.substr(0, from.size() - text.size());
  }
  if (digits == 0) return {};
  bool exponent_negative = false;
  std::int64_t exponent = 0;
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    exponent_negative = skip_number_sign(text);
    const std::string_view from = text;
    if (skip_field_digits(text) == 0) return {};
    constexpr std::int64_t enough = std::numeric_limits<std::int64_t>::max() / 100;
    for (const char c : from.substr(0, from.size() - text.size()))
      if (c != '_' && exponent < enough) exponent = exponent * 10 + (c - '0');
  }
  if (!text.empty()) return {};
  // The position of the first nonzero digit, counted from the decimal point.
  std::int64_t magnitude = 0;
  bool has_nonzero = false;
  for (const char c : integer_part) {
    has_nonzero = has_nonzero || (c != '0' && c != '_');
    magnitude += has_nonzero && c != '_';
  }
  for (const char c : fraction) {
    if (has_nonzero || (c != '0' && c != '_')) break;
    magnitude -= c != '_';
  }
  return {.valid = true, .below_one = (exponent_negative ? magnitude - exponent : magnitude + exponent) <= 0};
}

MILLRACE_INLINE std::uint64_t parse_field_integer(std::string_view text, std::string_view field, std::int64_t lowest,
                                                  std::uint64_t largest) {
  std::string_view digits = number_without_blanks(text);
  const bool negative = skip_number_sign(digits);
  std::string_view rest = digits;
  if (skip_field_digits(rest) == 0 || !rest.empty())
    throw_no_scalar(text, field, " is not a valid integer", "Use decimal digits, such as 7 or -12");
  const std::uint64_t limit = negative ? 0 - static_cast<std::uint64_t>(lowest) : largest;
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (c == '_') continue;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > limit / 10 || value * 10 > limit - digit || digit > limit)
      throw_no_scalar(text, field, " does not fit into the requested type",
                      "Use a value from " + std::to_string(lowest) + " to " + std::to_string(largest));
    value = value * 10 + digit;
  }
  return negative ? 0 - value : value;
}

template <class T>
void parse_real_number(std::string_view text, std::string_view field, T& value) {
  std::string_view number = number_without_blanks(text);
  const bool negative = skip_number_sign(number);
  if (bytes_equal_ignoring_case(number, "nan")) {
    value = std::numeric_limits<T>::quiet_NaN();
    return;
  }
  value = std::numeric_limits<T>::infinity();
  if (!bytes_equal_ignoring_case(number, "inf") && !bytes_equal_ignoring_case(number, "infinity")) {
    const decimal scanned = scan_decimal_number(number);
    if (!scanned.valid)
      throw_no_scalar(text, field, " is not a valid real number", "Use a decimal number, such as 0.5, -3 or 1e-4");
    std::string cleaned;
    if (number.find('_') != std::string_view::npos) {
      std::copy_if(number.begin(), number.end(), std::back_inserter(cleaned), [](char c) { return c != '_'; });
      number = cleaned;
    }
    value = 0;
    if (std::from_chars(number.data(), number.data() + number.size(), value).ec == std::errc::result_out_of_range) {
      if (!scanned.below_one)
        throw_no_scalar(text, field, " is too large for the requested type",
                        "Use a number up to " + std::to_string(std::numeric_limits<T>::max()));
      value = 0;
    }
  }
  if (negative) value = -value;
}

MILLRACE_INLINE void parse_real(std::string_view text, std::string_view field, float& value) {
  parse_real_number(text, field, value);
}
MILLRACE_INLINE void parse_real(std::string_view text, std::string_view field, double& value) {
  parse_real_number(text, field, value);
}

}}}   // namespace millrace::detail

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::size_t put_entries_table(block& b, std::size_t at, std::span<const entries_place> rows) noexcept {
  constexpr std::size_t unit = alignof(entries_place);
  static_assert(sizeof(std::size_t) == unit);
  const std::size_t table = (at + unit - 1) / unit;
  if (rows.empty() || table == 0 || table > std::numeric_limits<std::uint32_t>::max()) return at;
  const std::size_t count = rows.size();
  std::memcpy(b.data() + table * unit, &count, sizeof count);
  std::memcpy(b.data() + table * unit + sizeof count, rows.data(), rows.size_bytes());
  b.entries_table = static_cast<std::uint32_t>(table);
  return table * unit + sizeof count + rows.size_bytes();
}

MILLRACE_INLINE std::span<block* const> parts_of(block& b) noexcept {
  return {reinterpret_cast<block* const*>(b.data()), b.parts};
}

MILLRACE_INLINE void release_parts(block& b) noexcept {
  for (block* const part : parts_of(b)) release_block(part);
  b.parts = 0;
}

MILLRACE_INLINE std::span<const std::byte> find_entries_of_block(block& b, std::span<const std::byte> view) noexcept {
  for (block* const part : parts_of(b))
    if (const auto entries = find_entries_of_block(*part, view); !entries.empty()) return entries;
  if (b.entries_table == 0) return {};
  const std::byte* const table = b.data() + std::size_t{b.entries_table} * alignof(entries_place);
  std::size_t count;
  std::memcpy(&count, table, sizeof count);
  const auto* const rows = reinterpret_cast<const entries_place*>(table + sizeof count);
  const auto data_at = static_cast<std::size_t>(view.data() - b.data());
  const auto* const entry = std::lower_bound(rows, rows + count, data_at,
                                             [](const entries_place& row, std::size_t at) { return row.data_at < at; });
  if (entry == rows + count || entry->data_at != data_at || entry->data_size != view.size()) return {};
  return {b.data() + entry->entries_at, entry->entries_size};
}

MILLRACE_INLINE block_pool_state::~block_pool_state() {
  for (auto& list : idle)
    for (block* b : list) destroy(b);
}

MILLRACE_INLINE block* block_pool_state::pop_idle(std::size_t size_class) noexcept {
  // Prefers a larger idle block to a new one. Otherwise each class would retain as many blocks as it once had in use.
  for (std::size_t c = size_class; c < std::min(size_class + larger_classes + 1, classes); ++c) {
    if (idle[c].empty()) continue;
    block* const reused = idle[c].back();
    idle[c].pop_back();
    idle_bytes -= reused->capacity_bytes;
    return reused;
  }
  return nullptr;
}

MILLRACE_INLINE void block_pool_state::destroy(block* b) noexcept {
  show_to_readers(*b);
  b->~block();
  ::operator delete(static_cast<void*>(b), std::align_val_t{alignof(block)});
}

}   // namespace detail

MILLRACE_INLINE block_pool::block_pool(std::size_t idle_limit_bytes)
    : state_(detail::make_shared_object<detail::block_pool_state>(idle_limit_bytes)) {}

MILLRACE_INLINE detail::block_ref block_pool::take(std::size_t bytes) {
  const std::size_t size_class = detail::size_class_of(bytes);
  detail::block* block = nullptr;
  {
    const std::lock_guard lock(state_->mutex);
    block = state_->pop_idle(size_class);
    if (auto& list = state_->idle[size_class]; !block && list.capacity() == 0) list.reserve(1024);
  }
  if (block) {
    detail::show_to_readers(*block);
  } else {
    const std::size_t capacity = detail::bytes_of_class(size_class);
    void* memory = ::operator new(sizeof(detail::block) + capacity, std::align_val_t{alignof(detail::block)});
    block = new (memory) detail::block;
    block->capacity_bytes = capacity;
    block->size_class = static_cast<std::uint32_t>(size_class);
  }
  block->home = state_;
  return detail::block_ref(block);
}

MILLRACE_INLINE bytes bytes::owned(std::span<const std::byte> data, std::string_view name) {
  auto block = block_pool(0).take(data.size() + name.size());   // a pool without idle blocks frees it to the heap
  std::byte* const base = block.get()->data();
  if (!data.empty()) std::memcpy(base, data.data(), data.size());
  if (!name.empty()) std::memcpy(base + data.size(), name.data(), name.size());
  return {std::move(block), {base, data.size()}, {reinterpret_cast<const char*>(base + data.size()), name.size()}};
}

MILLRACE_INLINE bytes block_pool::copy(std::span<const std::byte> data, std::string_view name) {
  auto block = take(data.size());
  if (!data.empty()) std::memcpy(block.get()->data(), data.data(), data.size());
  const std::span<const std::byte> view(block.get()->data(), data.size());
  return {std::move(block), view, name};
}

MILLRACE_INLINE std::string text(const bytes& field) {
  if (detail::is_utf8(field.text())) return std::string(field.text());
  try {
    detail::throw_no_scalar(field.text(), field.name(), " is not valid UTF-8", "Convert the data set's text to UTF-8");
  } catch (error& e) {
    e.locate(detail::location_of(field));
    throw;
  }
}

}}   // namespace millrace
