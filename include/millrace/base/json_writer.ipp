// Defines what json_writer.hpp declares.
#pragma once

#include <millrace/base/json_writer.hpp>

#include <millrace/base/hex.hpp>
#include <millrace/base/numbers.hpp>
#include <millrace/base/text.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void append_json_string(std::string& out, std::string_view text) {
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

MILLRACE_INLINE void append_json_number(std::string& out, double value) {
  if (!is_finite(value)) {
    out += "null";
    return;
  }
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

}}}  // namespace millrace::detail
