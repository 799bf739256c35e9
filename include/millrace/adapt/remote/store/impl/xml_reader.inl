// Definitions for xml_reader.hpp.
#pragma once

#include <millrace/adapt/remote/store/xml_reader.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void xml_reader::fail(const char* problem) const {
  throw data_error(
      std::string("the XML ") + problem + ", at byte " + std::to_string(at_) + " of " + std::to_string(text_.size()),
      "Check the server, and any proxy in front of it", {.stage = "remote"});
}

MILLRACE_INLINE bool xml_reader::skip(std::string_view mark) noexcept {
  if (text_.substr(at_, mark.size()) != mark) return false;
  at_ += mark.size();
  return true;
}

MILLRACE_INLINE void xml_reader::skip_past(std::string_view mark) {
  const std::size_t end = text_.find(mark, at_);
  if (end == std::string_view::npos) fail("is truncated");
  at_ = end + mark.size();
}

MILLRACE_INLINE void xml_reader::add_text(std::string_view raw) {
  if (open_.empty()) {
    if (raw.find_first_not_of(" \t\r\n") != std::string_view::npos) fail("has text outside of its element");
    return;
  }
  std::string& content = open_.back().content;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '&') {
      content += raw[i];
      continue;
    }
    const std::size_t end = raw.find(';', i);
    if (end == std::string_view::npos) fail("has an & that does not begin an entity");
    add_entity(content, raw.substr(i + 1, end - i - 1));
    i = end;
  }
}

MILLRACE_INLINE void xml_reader::add_cdata() {
  if (open_.empty()) fail("has text outside of its element");
  const std::size_t from = at_;
  skip_past("]]>");
  open_.back().content += text_.substr(from, at_ - 3 - from);
}

MILLRACE_INLINE void xml_reader::add_entity(std::string& content, std::string_view name) const {
  if (name == "lt") content += '<';
  else if (name == "gt") content += '>';
  else if (name == "amp") content += '&';
  else if (name == "quot") content += '"';
  else if (name == "apos") content += '\'';
  else if (name.starts_with("#x")) add_character(content, name.substr(2), 16);
  else if (name.starts_with('#')) add_character(content, name.substr(1), 10);
  else fail("has an undefined entity");
}

MILLRACE_INLINE void xml_reader::add_character(std::string& content, std::string_view digits,
                                               std::uint32_t base) const {
  std::uint32_t code = 0;
  if (digits.empty() || digits.size() > 8) fail("has a character reference with wrong digits");
  for (const char c : digits) {
    std::uint32_t digit = base;
    if (c >= '0' && c <= '9') digit = static_cast<std::uint32_t>(c - '0');
    else if (c >= 'a' && c <= 'f') digit = static_cast<std::uint32_t>(c - 'a') + 10;
    else if (c >= 'A' && c <= 'F') digit = static_cast<std::uint32_t>(c - 'A') + 10;
    if (digit >= base) fail("has a character reference with wrong digits");
    code = code * base + digit;
  }
  if (code == 0 || code > 0x10ffff || code >> 11 == 0x1b) fail("has a reference to an invalid character");
  const auto add = [&](std::uint32_t byte) { content += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
    return;
  }
  if (code < 0x800) {
    add(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      add(0xe0 | code >> 12);
    } else {
      add(0xf0 | code >> 18);
      add(0x80 | (code >> 12 & 63));
    }
    add(0x80 | (code >> 6 & 63));
  }
  add(0x80 | (code & 63));
}

MILLRACE_INLINE std::string_view xml_reader::name_here() {
  const std::size_t end = std::min(text_.find_first_of(" \t\r\n/>=<&\"'", at_), text_.size());
  const std::string_view name = text_.substr(at_, end - at_);
  if (name.empty()) fail("has an element without a name");
  at_ = end;
  return name;
}

MILLRACE_INLINE void xml_reader::skip_attributes() {
  while (true) {
    const std::size_t before = at_;
    skip_blanks();
    if (at_ == text_.size()) fail("is truncated");
    if (text_[at_] == '>' || text_[at_] == '/') return;
    if (at_ == before) fail("has an attribute without a space before it");
    name_here();
    skip_blanks();
    if (!skip("=")) fail("has an attribute without a value");
    skip_blanks();
    const std::string_view quote = text_.substr(at_, 1);
    if (quote != "\"" && quote != "'") fail("has an attribute without quotes");
    ++at_;
    const std::size_t from = at_;
    skip_past(quote);
    if (text_.substr(from, at_ - from).find('<') != std::string_view::npos) fail("has a < in an attribute");
  }
}

}}}   // namespace millrace::detail
