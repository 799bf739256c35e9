// Reads the profile files of Amazon's programs: ~/.aws/credentials and ~/.aws/config.
//
//   const auto file = mr::detail::profile_file::parse(text, "/made-up/.aws/config");
//   file.value("profile train", "region");               // "eu-west-1"; empty if there is none
//   file.value("services mine", "s3.endpoint_url");      // indented lines belong to the name above them
//
// Errors: profile_error with path and line for what is neither a section nor NAME = VALUE. It never quotes a line,
// since that may hold a secret. Threads: values. Source: the AWS SDKs and Tools Reference Guide, "Shared config files".
#pragma once

#include <millrace/adapt/remote/store/small_http.hpp>
#include <millrace/base/error.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A profile file that cannot be read, perhaps because a program is writing it.
class profile_error : public setup_error {
 public:
  using setup_error::setup_error;
};

/// The sections of a file, and the values in them.
class profile_file {
 public:
  static profile_file parse(std::string_view text, std::string_view path) {
    profile_file file;
    std::map<std::string, std::string>* section = nullptr;
    std::string above;   // the name that indented lines belong to
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end), content = trimmed(line);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (content.empty() || content[0] == '#' || content[0] == ';') continue;
      if (content[0] == '[') {
        const std::size_t close = content.find(']');
        if (close == std::string_view::npos) fail(path, number);
        section = &file.sections_[section_name(content.substr(1, close - 1))];
        above.clear();
        continue;
      }
      const bool indented = line[0] == ' ' || line[0] == '\t';
      const std::size_t equals = content.find('=');
      if (!section) fail(path, number);
      if (equals == std::string_view::npos || equals == 0) {
        if (!indented || above.empty()) fail(path, number);
        continue;   // the value above goes on, and no value that is asked for has a second line
      }
      const std::string name = ascii_lower(trimmed(content.substr(0, equals)));
      const std::string_view value = without_comment(trimmed(content.substr(equals + 1)));
      if (indented && !above.empty()) {
        (*section)[above + '.' + name] = value;
      } else {
        (*section)[name] = value;
        above = name;
      }
    }
    return file;
  }

  bool has(const std::string& section) const { return sections_.count(section) != 0; }

  std::string value(const std::string& section, const std::string& name) const {
    const auto found = sections_.find(section);
    if (found == sections_.end()) return {};
    const auto of_name = found->second.find(name);
    return of_name == found->second.end() ? std::string() : of_name->second;
  }

 private:
  [[noreturn]] static void fail(std::string_view path, std::size_t line) {
    throw profile_error("a profile file is wrong: line " + std::to_string(line) + " of " + printable(path) +
                          " is neither [SECTION] nor NAME = VALUE",
                      "Correct the line; `aws configure list` reads the same file", {.stage = "remote"});
  }

  /// [profile "a b"] is the section `profile a b`.
  static std::string section_name(std::string_view text) {
    std::string name;
    for (const char c : trimmed(text)) {
      const bool blank = c == ' ' || c == '\t';
      if (c != '"' && c != '\'' && !(blank && name.ends_with(' '))) name += blank ? ' ' : c;
    }
    return name;
  }

  static std::string_view without_comment(std::string_view value) noexcept {
    for (std::size_t i = 1; i < value.size(); ++i)
      if ((value[i] == '#' || value[i] == ';') && (value[i - 1] == ' ' || value[i - 1] == '\t'))
        return trimmed(value.substr(0, i - 1));
    return value;
  }

  std::map<std::string, std::map<std::string, std::string>> sections_;
};

}}}  // namespace millrace::detail
