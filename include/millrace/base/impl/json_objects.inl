// Definitions for json_objects.hpp.
#pragma once

#include <millrace/base/json_objects.hpp>

#include <millrace/base/error.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE void json_objects::fail(const char* problem) const {
  throw data_error(std::string("the file ") + problem, "Remove the file, or write it again",
                   {.stage = "index", .shard = std::string(path_), .key = {}, .offset_bytes = at_});
}

MILLRACE_RARE bool json_objects::next_is(char c) {
  skip_blanks();
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

MILLRACE_RARE bool json_objects::is_other_word(std::string_view word) noexcept {
  for (const std::string_view constant : {"true", "false", "NaN", "Infinity", "-Infinity"})
    if (word == constant) return true;
  return !word.empty() && word.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
}

MILLRACE_RARE std::string json_objects::string_after_quote() {
  std::string out;
  for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
    if (text_[at_] != '\\') {
      out += text_[at_];
      continue;
    }
    constexpr std::string_view escapes = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    if (++at_ >= text_.size()) fail();
    const std::size_t index = escapes.find(text_[at_]);
    if (index != std::string_view::npos) out += meanings[index];
    else if (text_[at_] == 'u') append_escape(out);
    else fail();
  }
  if (at_ >= text_.size()) fail();
  ++at_;
  return out;
}

MILLRACE_RARE void json_objects::append_escape(std::string& out) {
  std::uint32_t code = code_unit();
  if (code >> 10 == 0xd800 >> 10 && text_.substr(at_ + 1, 2) == "\\u") {
    const std::size_t before = at_;
    at_ += 2;
    if (const std::uint32_t low = code_unit(); low >> 10 == 0xdc00 >> 10)
      code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
    else at_ = before;
  }
  const auto add = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6);
    add(0x80 | (code & 63));
  } else {
    if (code < 0x10000) {
      add(0xe0 | code >> 12);
    } else {
      add(0xf0 | code >> 18);
      add(0x80 | (code >> 12 & 63));
    }
    add(0x80 | (code >> 6 & 63));
    add(0x80 | (code & 63));
  }
}

MILLRACE_RARE std::uint32_t json_objects::code_unit() {
  std::uint32_t unit = 0;
  const char* const digits = text_.data() + at_ + 1;
  if (text_.size() - at_ <= 4 || std::from_chars(digits, digits + 4, unit, 16).ptr != digits + 4) fail();
  at_ += 4;
  return unit;
}

}}}   // namespace millrace::detail
