// Writes JSON strings, numbers and objects that every parser accepts.
//
//   std::string line = "{";
//   mr::detail::append_json_string(line, name);     // "quoted \"name\""
//   line += ':';
//   mr::detail::append_json_number(line, value);    // 0.1, 1e+300, null
//
//   mr::detail::json_writer object;                  // inserts the commas: {"name":"...","value":0.1}
//   object.open('{');
//   object.add("name", name);
//   object.add("value", value);
//   object.close('}');
//
// A string may contain any bytes. Each byte that is not valid UTF-8 is replaced by U+FFFD. A number becomes the
// shortest text that a parser reads as the same double. The locale has no effect. Control characters, marks that change
// the text direction, and the line breaks U+2028 and U+2029 are escaped.
// Errors: none. Threads: pure functions; a json_writer is not synchronized.
// Source: RFC 8259; UTF-8 as in RFC 3629, section 4.
#pragma once

#include <millrace/base/version.hpp>

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

void append_json_string(std::string& out, std::string_view text);

/// Appends a number. NaN and the infinities become null, because JSON cannot represent them.
void append_json_number(std::string& out, double value);

template <std::integral T>
void append_json_number(std::string& out, T value) {
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

/// Builds JSON text and inserts the commas.
class json_writer {
 public:
  std::string take() { return std::move(text_); }

  void open(char bracket);
  void open(std::string_view name, char bracket);
  void close(char bracket);
  template <class T>
    requires std::is_arithmetic_v<T>
  void add(std::string_view name, T value) {
    key(name);
    if constexpr (std::is_same_v<T, bool>) text_ += value ? "true" : "false";
    else append_json_number(text_, value);
  }
  void add(std::string_view name, std::string_view value);
  template <class T>
  void add(std::string_view name, const std::optional<T>& value) {
    if (value) add(name, *value);
    else {
      key(name);
      text_ += "null";
    }
  }
  void add_text(std::string_view value);

 private:
  void comma();
  void key(std::string_view name);

  std::string text_;
  bool first_ = true;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/base/impl/json_writer.inl>
#endif
