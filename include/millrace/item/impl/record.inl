// Definitions for record.hpp.
#pragma once

#include <millrace/item/record.hpp>

#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Returns the part of a name that the '*' of the pattern matches. Returns the entire name if it is equal to the
/// pattern, and std::nullopt if the name does not match.
MILLRACE_INLINE std::optional<std::string_view> matched_field_part(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name ? std::optional(name) : std::nullopt;
  const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
  if (name.size() < before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return std::nullopt;
  return name.substr(before.size(), name.size() - before.size() - after.size());
}

/// Throws setup_error if one of the patterns, which are separated by ';', has a second '*'.
MILLRACE_RARE void check_field_patterns(std::string_view patterns) {
  std::size_t stars = 0;
  for (std::size_t begin = 0, at = 0; at < patterns.size(); ++at) {
    if (patterns[at] == ';') stars = 0, begin = at + 1;
    if (patterns[at] != '*' || ++stars < 2) continue;
    const std::string_view pattern = patterns.substr(begin, patterns.find(';', begin) - begin);
    throw setup_error("a pattern of field names has two '*': got '" + printable(pattern) + "', expected at most one",
                      "Separate several patterns by ';', such as \"*.jpg;*.png\"");
  }
}

/// Returns whether `a` precedes `b` if digits are compared as numbers, and all other bytes one by one.
MILLRACE_INLINE bool precedes_by_number(std::string_view a, std::string_view b) noexcept {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto take_number = [&](std::string_view& text) {
    const auto* const end = std::find_if(text.begin(), text.end(), [&](char c) { return !is_digit(c); });
    const auto* const first = std::find_if(text.begin(), end, [](char c) { return c != '0'; });
    const std::string_view digits = text.substr(static_cast<std::size_t>(first - text.begin()),
                                                static_cast<std::size_t>(end - first));
    text.remove_prefix(static_cast<std::size_t>(end - text.begin()));
    return digits;
  };
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view m = take_number(a), n = take_number(b);
      if (m.size() != n.size()) return m.size() < n.size();
      if (m != n) return m < n;
    } else {
      const auto c = static_cast<unsigned char>(a.front()), d = static_cast<unsigned char>(b.front());
      if (c != d) return c < d;
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

}   // namespace detail

MILLRACE_INLINE bytes record::field(std::size_t index) const noexcept {
  const auto& f = entries()[index];
  return {detail::block_ref(block_of(head_.get())), {address(f.data_at), f.data_size}, text(f.name_at, f.name_size)};
}

MILLRACE_INLINE std::vector<bytes> record::fields(std::string_view patterns, order by) const {
  detail::check_field_patterns(patterns);
  std::vector<std::pair<std::string_view, std::size_t>> matches;   // the text of '*', and the index of the field
  for (std::size_t i = 0; i < field_count(); ++i) {
    const std::string_view name = text(entries()[i].name_at, entries()[i].name_size);
    for (std::string_view rest = patterns;;) {
      const std::size_t end = rest.find(';');
      if (const auto part = detail::matched_field_part(rest.substr(0, end), name)) {
        matches.emplace_back(*part, i);
        break;
      }
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + 1);
    }
  }
  if (by == order::number)
    std::stable_sort(matches.begin(), matches.end(),
                     [](const auto& a, const auto& b) { return detail::precedes_by_number(a.first, b.first); });
  std::vector<bytes> all;
  all.reserve(matches.size());
  for (const auto& [part, index] : matches) all.push_back(field(index));
  return all;
}

MILLRACE_RARE error_location record::where() const {
  return {.stage = {}, .shard = std::string(shard()), .key = std::string(key()), .offset_bytes = offset_bytes()};
}

MILLRACE_INLINE std::size_t record::find(std::string_view names) const noexcept {
  while (head_) {
    // The compiler computes these functions of constant names, also if it does not inline those of std::string_view.
    const void* const semicolon = names.empty() ? nullptr : std::memchr(names.data(), ';', names.size());
    const std::size_t end = semicolon ? static_cast<std::size_t>(static_cast<const char*>(semicolon) - names.data())
                                      : names.size();
    const std::string_view name(names.data(), end);
    for (std::size_t i = 0; i < head_->field_count; ++i)
      if (text(entries()[i].name_at, entries()[i].name_size) == name) return i;
    if (!semicolon) break;
    names.remove_prefix(end + 1);
  }
  return none;
}

MILLRACE_RARE std::string record::longer_name(std::string_view names) const {
  for (;;) {
    const std::size_t end = names.find(';');
    const std::string_view alternative = names.substr(0, end);
    for (std::size_t i = 0; i < field_count(); ++i) {
      const std::string_view name = field(i).name();
      const bool longer = name.size() > alternative.size() && name.ends_with(alternative);
      if (longer && name[name.size() - alternative.size() - 1] == '.') return std::string(name);
    }
    if (end == std::string_view::npos) return {};
    names.remove_prefix(end + 1);
  }
}

MILLRACE_RARE void record::throw_missing(std::string_view names) const {
  std::string present;
  for (std::size_t i = 0; i < field_count(); ++i) {
    present += present.empty() ? "'" : ", '";
    present += printable(field(i).name());
    present += '\'';
  }
  const std::string longer = longer_name(names);
  throw detail::missing_field_error(
      "the record has no field '" + printable(names) + "'; it has " + (present.empty() ? "no fields" : present),
      longer.empty() ? "Name a field that every sample has, list alternatives as \"jpg;png\", call has() first, or "
                       "choose samples by .having = \"" +
                           printable(names) + "\""
                     : "A key ends at the first dot of the file name: name the field '" + printable(longer) +
                           "', or write file names with one dot",
      where());
}

namespace detail {

MILLRACE_RARE error_location location_of(const bytes& field) {
  const auto* block = field.block().get();
  if (!block || !block->head) return {};
  const auto* head = static_cast<const record_head*>(block->head);
  const auto* base = reinterpret_cast<const std::byte*>(block + 1);
  const auto begin = static_cast<std::size_t>(field.data() - base), end = begin + field.size();
  for (;;) {
    const record candidate(head);
    if (head->next_at == 0) return candidate.where();
    for (std::size_t i = 0; i < candidate.field_count(); ++i) {
      const bytes own = candidate.field(i);
      const auto at = static_cast<std::size_t>(own.data() - base);
      if (at <= begin && end <= at + own.size() && (!own.empty() || own.name().data() == field.name().data()))
        return candidate.where();
    }
    head = reinterpret_cast<const record_head*>(base + head->next_at);
  }
}

}   // namespace detail

}}   // namespace millrace
