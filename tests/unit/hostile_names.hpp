// Names that a data set may have, and that must have no effect where they are printed or written.
#pragma once

#include <millrace/base/text.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace hostile {

struct hostile_name {
  std::string what;
  std::string text;
};

inline const std::vector<hostile_name>& names() {
  using namespace std::string_literals;
  static const std::vector<hostile_name> all{
      {"end of line", "a\nmillrace: all is well"},
      {"return and tab", "a\rb\tc"},
      {"NUL", "a\0b"s},
      {"ESC: clears the screen", "\x1b[2J\x1b[H"},
      {"ESC: sets the title", "\x1b]0;owned\x07"},
      {"C1 in UTF-8: U+009B", "\xc2\x9b" "2J"},
      {"C1 as a byte", "\x9b" "2J"},
      {"DEL and backspace", "a\x7f\b\b"},
      {"line separator, turned writing", "a\xe2\x80\xa8" "b\xe2\x80\xae" "c\xe2\x81\xa6" "d"},
      {"script", "<script>alert(1)</script>"},
      {"attribute", "\" onload=\"alert(1)\" x='"},
      {"entity", "&lt;&amp;"},
      {"JSON", "\"}, {\"key\": \"x\\"},
      {"way out", "../../../etc/passwd"},
      {"absolute", "/etc/passwd"},
      {"format", "%s%n%d"},
      {"not UTF-8", "\xff\xfe\xc3("},
      {"cut UTF-8", "abc\xe2\x82"},
      {"surrogate", "\xed\xa0\x80"},
      {"64 KB", std::string(65'536, 'k')},
      {"64 KB of ESC", std::string(65'536, '\x1b')},
  };
  return all;
}

/// The defect of a text that a terminal gets; nullptr: none.
inline const char* obeyed_by_a_terminal(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && text[i] != '\n' && text[i] != '\t') || byte == 0x7f) return "a control character";
    if (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) return "a C1 character";
    if (text.substr(i, 3) == "\xe2\x80\xae" || text.substr(i, 3) == "\xe2\x81\xa6") return "turned writing";
  }
  return millrace::detail::is_utf8(text) ? nullptr : "bytes that are not UTF-8";
}

}  // namespace hostile
