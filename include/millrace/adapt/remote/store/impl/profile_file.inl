// Definitions for profile_file.hpp.
#pragma once

#include <millrace/adapt/remote/store/profile_file.hpp>

#include <millrace/adapt/remote/store/small_http.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE profile_file profile_file::parse(std::string_view text, std::string_view path) {
  profile_file file;
  std::map<std::string, std::string>* section = nullptr;
  std::string above;   // the name to which indented lines belong
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
      continue;   // a continuation line, which no value that Millrace reads has
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

MILLRACE_INLINE std::string profile_file::value(const std::string& section, const std::string& name) const {
  const auto values = sections_.find(section);
  if (values == sections_.end()) return {};
  const auto of_name = values->second.find(name);
  return of_name == values->second.end() ? std::string() : of_name->second;
}

MILLRACE_INLINE void profile_file::fail(std::string_view path, std::size_t line) {
  throw profile_error("a profile file is wrong: line " + std::to_string(line) + " of " + printable(path) +
                        " is neither [SECTION] nor NAME = VALUE",
                    "Correct the line; `aws configure list` reads the same file", {.stage = "remote"});
}

MILLRACE_INLINE std::string profile_file::section_name(std::string_view text) {
  std::string name;
  for (const char c : trimmed(text)) {
    const bool blank = c == ' ' || c == '\t';
    if (c != '"' && c != '\'' && !(blank && name.ends_with(' '))) name += blank ? ' ' : c;
  }
  return name;
}

MILLRACE_INLINE std::string_view profile_file::without_comment(std::string_view value) noexcept {
  for (std::size_t i = 1; i < value.size(); ++i)
    if ((value[i] == '#' || value[i] == ';') && (value[i - 1] == ' ' || value[i - 1] == '\t'))
      return trimmed(value.substr(0, i - 1));
  return value;
}

}}}  // namespace millrace::detail
