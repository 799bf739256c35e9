// Definitions for required_fields.hpp.
#pragma once

#include <millrace/io/tar/format/required_fields.hpp>

#include <millrace/base/digest.hpp>
#include <millrace/base/error.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE required_fields::required_fields(std::vector<std::string> entries) : entries_(std::move(entries)) {
  constexpr std::size_t max_entries = 64;
  if (entries_.size() > max_entries)
    throw setup_error(".having has too many entries: got " + std::to_string(entries_.size()) + ", expected at most 64",
                      "Select samples with .where, or write shards in which every sample has all fields");
  for (const std::string& names : entries_) {
    if (std::any_of(names.begin(), names.end(), [](char c) { return c >= 'A' && c <= 'Z'; }))
      throw setup_error(".having names the field '" + printable(names) +
                            "' with upper-case letters, but field names "
                            "are converted to lower case",
                        "Write it in lower case; it also matches names in upper case");
    if (names.empty() || names.front() == ';' || names.back() == ';' || names.find(";;") != std::string::npos)
      throw setup_error(".having has an empty name: got '" + printable(names) + "'",
                        "Write a field name, or alternatives such as \"jpg;png\"");
  }
}

MILLRACE_INLINE std::uint64_t required_fields::bits_of(std::string_view field) const noexcept {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    for (std::string_view names = entries_[i];;) {
      const std::size_t end = names.find(';');
      if (names.substr(0, end) == field) bits |= std::uint64_t{1} << i;
      if (end == std::string_view::npos) break;
      names.remove_prefix(end + 1);
    }
  return bits;
}

MILLRACE_RARE std::string required_fields::text() const {
  std::string all;
  for (const std::string& names : entries_) all += (all.empty() ? "'" : " and '") + printable(names) + "'";
  return all;
}

MILLRACE_INLINE std::uint64_t required_fields::digest() const noexcept {
  std::uint64_t sum = 0;
  for (const std::string& names : entries_)
    sum = detail::combine_keys(sum, detail::digest_bytes(std::as_bytes(std::span(names))));
  return sum;
}

}}   // namespace millrace

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE selected_fields::selected_fields(const std::vector<std::string>& fields) {
  for (const std::string& names : fields) add(names);
}

MILLRACE_INLINE bool selected_fields::contains(std::string_view field) const noexcept {
  return names_.empty() || std::find(names_.begin(), names_.end(), field) != names_.end();
}

MILLRACE_RARE void selected_fields::add(std::string_view names) {
  if (std::any_of(names.begin(), names.end(), [](char c) { return c >= 'A' && c <= 'Z'; }))
    throw setup_error(
        "the field '" + printable(names) + "' has upper-case letters, but field names are converted to lower case",
        "Write it in lower case; it also matches names in upper case");
  for (std::size_t at = 0; at <= names.size();) {
    const std::size_t end = std::min(names.find(';', at), names.size());
    names_.emplace_back(names.substr(at, end - at));
    at = end + 1;
  }
}

}}}   // namespace millrace::detail
