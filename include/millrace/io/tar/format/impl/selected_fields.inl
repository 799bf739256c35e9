// Definitions for selected_fields.hpp.
#pragma once

#include <millrace/io/tar/format/selected_fields.hpp>

#include <millrace/base/error.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE selected_fields::selected_fields(const std::vector<std::string>& fields) {
  for (const std::string& names : fields) add(names);
}

MILLRACE_INLINE bool selected_fields::contains(std::string_view field) const noexcept {
  return names_.empty() || std::find(names_.begin(), names_.end(), field) != names_.end();
}

MILLRACE_RARE void selected_fields::add(std::string_view names) {
  if (std::any_of(names.begin(), names.end(), [](char c) { return c >= 'A' && c <= 'Z'; }))
    throw setup_error("the field '" + printable(names) + "' has upper-case letters, but field names have none",
                      "Write it in lower case; it also matches names in upper case");
  for (std::size_t at = 0; at <= names.size();) {
    const std::size_t end = std::min(names.find(';', at), names.size());
    names_.emplace_back(names.substr(at, end - at));
    at = end + 1;
  }
}

}}}   // namespace millrace::detail
