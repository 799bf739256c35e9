// required_fields: the fields that a sample must have. The option .having of shards() has this type.
//
//   {.having = "jpg;png"}                    // at least one of the alternatives, as in record["jpg;png"]
//   {.having = {"jpg;png", "txt"}}           // both entries: an image, and a text
//
// A sample that lacks one of the required fields is skipped and counted, but does not count as damage. Names are in
// lower case, like the fields of a record.
// Errors: setup_error for a name with upper-case letters, for an empty name and for more than 64 entries.
// Threads: immutable; any thread.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// A list of entries. A sample must have all of them. An entry is a field, or alternatives such as "jpg;png".
class required_fields {
 public:
  /// Creates an empty list, which requires no field.
  required_fields() = default;
  /// Requires one of the alternatives in `names`.
  required_fields(const char* names) : required_fields(std::vector<std::string>{names}) {}
  required_fields(const std::string& names) : required_fields(std::vector<std::string>{names}) {}
  /// Requires all entries.
  required_fields(std::initializer_list<std::string> entries) : required_fields(std::vector<std::string>(entries)) {}
  explicit required_fields(std::vector<std::string> entries);

  /// Returns whether no field is required.
  bool empty() const noexcept { return entries_.empty(); }
  /// Returns the entries.
  const std::vector<std::string>& entries() const noexcept { return entries_; }
  /// Returns a mask in which bit i is set if `field` satisfies entry i.
  std::uint64_t bits_of(std::string_view field) const noexcept;
  /// Returns the mask in which the bits of all entries are set.
  std::uint64_t all_bits() const noexcept { return entries_.empty() ? 0 : ~std::uint64_t{0} >> (64 - entries_.size()); }
  /// Returns the entries as text for messages, such as "'jpg;png' and 'txt'".
  std::string text() const;
  /// Returns a digest of the entries, or 0 if the list is empty.
  std::uint64_t digest() const noexcept;

 private:
  std::vector<std::string> entries_;
};

}}   // namespace millrace

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// The set of fields that the user selects from each sample.
//
// Errors: setup_error for a name with upper-case letters, because field names have only lower-case letters. Threads:
// immutable; any thread.

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
#include <millrace/io/tar/format/impl/required_fields.inl>
#endif
