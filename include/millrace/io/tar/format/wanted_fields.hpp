// The set of fields that the user wants of each sample.
//
//   mr::detail::wanted_fields wanted({"jpg;png", "cls"});   // names or alternatives; an empty list means all fields
//   wanted.contains("png");                                 // true
//
// Errors: setup_error for a name with upper-case letters, which no field has. Threads: any number of readers.
#pragma once

#include <millrace/base/error.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The wanted fields by name.
class wanted_fields {
 public:
  explicit wanted_fields(const std::vector<std::string>& fields) {
    for (const std::string& names : fields) add(names);
  }

  /// Returns whether `field` is wanted.
  bool contains(std::string_view field) const noexcept {
    return names_.empty() || std::find(names_.begin(), names_.end(), field) != names_.end();
  }

 private:
  void add(std::string_view names) {
    if (std::any_of(names.begin(), names.end(), [](char c) { return c >= 'A' && c <= 'Z'; }))
      throw setup_error("the field '" + printable(names) + "' has upper-case letters, and no field of a record has",
                        "Write it in lower case; it stands for all spellings");
    for (std::size_t at = 0; at <= names.size();) {
      const std::size_t end = std::min(names.find(';', at), names.size());
      names_.emplace_back(names.substr(at, end - at));
      at = end + 1;
    }
  }

  std::vector<std::string> names_;
};

}}}  // namespace millrace::detail
