// The set of fields that the user wants of each sample.
//
//   mr::detail::wanted_fields wanted({"jpg;png", "cls"});   // names or alternatives; an empty list means all fields
//   wanted.contains("png");                                 // true
//
// Errors: setup_error for a name with upper-case letters, which no field has. Threads: any number of readers.
#pragma once

#include <millrace/base/version.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The wanted fields by name.
class wanted_fields {
 public:
  explicit wanted_fields(const std::vector<std::string>& fields);

  /// Returns whether `field` is wanted.
  bool contains(std::string_view field) const noexcept;

 private:
  void add(std::string_view names);

  std::vector<std::string> names_;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/tar/format/impl/wanted_fields.inl>
#endif
