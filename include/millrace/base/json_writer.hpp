// Writes JSON strings and numbers that every parser accepts.
//
//   std::string line = "{";
//   mr::detail::append_json_string(line, name);     // "quoted \"name\""
//   line += ':';
//   mr::detail::append_json_number(line, value);    // 0.1, 1e+300, null
//
// Text from outside may hold any bytes: a byte that is not UTF-8 becomes U+FFFD. A number becomes the shortest text
// that reads back as the same double. The locale has no effect. Errors: none. Threads: pure.
// Source: RFC 8259; UTF-8 as in RFC 3629, section 4.
#pragma once

#include <millrace/base/hex.hpp>
#include <millrace/base/numbers.hpp>
#include <millrace/base/text.hpp>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline void append_json_string(std::string& out, std::string_view text) {
  std::string clean;
  if (!is_utf8(text)) {
    clean = text;
    clean_utf8(clean);
    text = clean;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += hex(static_cast<unsigned char>(c), 2);
    } else {
      out += c;
    }
  }
  out += '"';
}

/// Appends a number. NaN and the infinities become null, because JSON has no form for them.
inline void append_json_number(std::string& out, double value) {
  if (!is_finite(value)) {
    out += "null";
    return;
  }
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

template <std::integral T>
void append_json_number(std::string& out, T value) {
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

}}}  // namespace millrace::detail
