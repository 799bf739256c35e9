// Definitions for json_writer.hpp.
#pragma once

#include <millrace/base/json_writer.hpp>

#include <millrace/base/half.hpp>
#include <millrace/base/text.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE void append_json_string(std::string& out, std::string_view text) {
  std::string clean;
  if (!is_utf8(text)) {
    clean = text;
    clean_utf8(clean);
    text = clean;
  }
  const auto escape = [&out](unsigned code) MILLRACE_RARE_CODE {
    out += "\\u";
    out += hex(code, 4);
  };
  out += '"';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20 || code == 0x7f) {
      escape(code);
    } else if (code == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      escape(static_cast<unsigned char>(text[++i]));
    } else if (const auto three = text.substr(i, 3); (three >= "\xe2\x80\xa8" && three <= "\xe2\x80\xae") ||
                                                     (three >= "\xe2\x81\xa6" && three <= "\xe2\x81\xa9")) {
      escape(0x2000U | (static_cast<unsigned char>(three[1]) & 0x3fU) << 6 |
             (static_cast<unsigned char>(three[2]) & 0x3fU));
      i += 2;
    } else {
      out += c;
    }
  }
  out += '"';
}

MILLRACE_RARE void append_json_number(std::string& out, double value) {
  if (!is_finite(value)) {
    out += "null";
    return;
  }
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

MILLRACE_RARE void json_writer::open(char bracket) {
  comma();
  text_ += bracket;
  first_ = true;
}

MILLRACE_RARE void json_writer::open(std::string_view name, char bracket) {
  key(name);
  text_ += bracket;
  first_ = true;
}

MILLRACE_RARE void json_writer::close(char bracket) {
  text_ += bracket;
  first_ = false;
}

MILLRACE_RARE void json_writer::add(std::string_view name, std::string_view value) {
  key(name);
  append_json_string(text_, value);
}

MILLRACE_RARE void json_writer::add_text(std::string_view value) {
  comma();
  append_json_string(text_, value);
}

MILLRACE_RARE void json_writer::comma() {
  if (!first_) text_ += ',';
  first_ = false;
}

MILLRACE_RARE void json_writer::key(std::string_view name) {
  comma();
  append_json_string(text_, name);
  text_ += ':';
}

}}}   // namespace millrace::detail
