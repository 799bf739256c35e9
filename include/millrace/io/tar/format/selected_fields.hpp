// The set of fields that the user selects from each sample.
//
//   mr::detail::selected_fields selected({"jpg;png", "cls"});   // empty: selects all fields
//   selected.contains("png");                                   // true
//
// Errors: setup_error for a name with upper-case letters, because field names have only lower-case letters. Threads:
// immutable; any thread.
#pragma once

#include <millrace/base/version.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The selected fields by name.
class selected_fields {
 public:
  explicit selected_fields(const std::vector<std::string>& fields);

  /// Returns whether `field` is selected.
  bool contains(std::string_view field) const noexcept;

 private:
  void add(std::string_view names);

  std::vector<std::string> names_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/tar/format/impl/selected_fields.inl>
#endif
