// Reads AWS profile files: ~/.aws/credentials and ~/.aws/config.
//
//   const auto file = mr::detail::profile_file::parse(text, "/made-up/.aws/config");
//   file.value("profile train", "region");               // "eu-west-1", or "" if the file has no such value
//   file.value("services mine", "s3.endpoint_url");      // the name is on an indented line after "s3="
//
// Errors: profile_error with path and line number for a line that is neither a section nor NAME = VALUE. The error does
// not contain the line, which may contain a secret. Threads: not synchronized.
// Source: the AWS SDKs and Tools Reference Guide, "Shared config files".
#pragma once

#include <millrace/base/error.hpp>

#include <map>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The error for a profile file that cannot be parsed, for example while a program is writing it.
class profile_error : public setup_error {
 public:
  using setup_error::setup_error;
};

/// The sections of a profile file and their values.
class profile_file {
 public:
  static profile_file parse(std::string_view text, std::string_view path);

  bool has(const std::string& section) const { return sections_.count(section) != 0; }

  std::string value(const std::string& section, const std::string& name) const;

 private:
  [[noreturn]] static void fail(std::string_view path, std::size_t line);
  /// Returns the name of the section in a header: `profile a b` for [profile "a b"].
  static std::string section_name(std::string_view text);
  static std::string_view without_comment(std::string_view value) noexcept;

  std::map<std::string, std::map<std::string, std::string>> sections_;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/profile_file.inl>
#endif
