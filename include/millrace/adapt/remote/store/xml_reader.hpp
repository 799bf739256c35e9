// Reads the small XML documents in which object stores answer, element by element.
//
//   mr::detail::xml_reader xml(text);
//   xml.for_each([&](std::string_view path, const std::string& content) {
//     if (path == "ListBucketResult/Contents/Key") keys.push_back(content);
//   });
//
// Passes each element at its end, with the names of those around it and the text that stands in it directly. Leaves out
// prefixes of names and all attributes. Knows comments, processing instructions, CDATA and the five entities.
// Errors: data_error with the offset for text that is not well-formed, and beyond 16 levels and 64 MiB. A document type
// is refused, too: it could define entities that grow without end. Threads: no shared state. Source: XML 1.0.
#pragma once

#include <millrace/base/error.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Reads one document.
class xml_reader {
 public:
  explicit xml_reader(std::string_view text) : text_(text) {}

  /// Calls `take` with the path and the text of each element.
  template <class Take>
  void for_each(const Take& take) {
    if (text_.size() > max_bytes) fail("is longer than 64 MiB");
    skip("\xef\xbb\xbf");
    bool had_root = false;
    while (true) {
      const std::size_t mark = std::min(text_.find('<', at_), text_.size());
      add_text(text_.substr(at_, mark - at_));
      at_ = mark;
      if (at_ == text_.size()) break;
      if (skip("<?")) skip_behind("?>");
      else if (skip("<!--")) skip_behind("-->");
      else if (skip("<![CDATA[")) add_cdata();
      else if (skip("</")) end_element(take);
      else if (skip("<!")) fail("has a document type, which no store sends");
      else begin_element(take, had_root);
    }
    if (!open_.empty()) fail("ends before its elements do");
    if (!had_root) fail("has no element");
  }

 private:
  static constexpr std::size_t max_bytes = std::size_t{64} << 20, max_depth = 16;

  /// An element that is not yet closed: where its own name begins in the path, and its text.
  struct element {
    std::string name{};
    std::size_t path_bytes = 0;
    std::string content{};
  };

  [[noreturn]] void fail(const char* problem) const {
    throw data_error(std::string("the XML ") + problem + ", at byte " + std::to_string(at_) + " of " +
                         std::to_string(text_.size()),
                     "Look at what the server or a proxy before it answers", {.stage = "remote"});
  }

  bool skip(std::string_view mark) noexcept {
    if (text_.substr(at_, mark.size()) != mark) return false;
    at_ += mark.size();
    return true;
  }
  void skip_behind(std::string_view mark) {
    const std::size_t found = text_.find(mark, at_);
    if (found == std::string_view::npos) fail("is cut short");
    at_ = found + mark.size();
  }
  void skip_blanks() noexcept { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  void add_text(std::string_view raw) {
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
      if (end == std::string_view::npos) fail("has an & that begins no entity");
      add_entity(content, raw.substr(i + 1, end - i - 1));
      i = end;
    }
  }

  void add_cdata() {
    if (open_.empty()) fail("has text outside of its element");
    const std::size_t from = at_;
    skip_behind("]]>");
    open_.back().content += text_.substr(from, at_ - 3 - from);
  }

  void add_entity(std::string& content, std::string_view name) const {
    if (name == "lt") content += '<';
    else if (name == "gt") content += '>';
    else if (name == "amp") content += '&';
    else if (name == "quot") content += '"';
    else if (name == "apos") content += '\'';
    else if (name.starts_with("#x")) add_character(content, name.substr(2), 16);
    else if (name.starts_with('#')) add_character(content, name.substr(1), 10);
    else fail("has an entity that it does not define");
  }

  void add_character(std::string& content, std::string_view digits, std::uint32_t base) const {
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
    if (code == 0 || code > 0x10ffff || code >> 11 == 0x1b) fail("has a character that does not exist");
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

  std::string_view name_here() {
    const std::size_t end = std::min(text_.find_first_of(" \t\r\n/>=<&\"'", at_), text_.size());
    const std::string_view name = text_.substr(at_, end - at_);
    if (name.empty()) fail("has an element without a name");
    at_ = end;
    return name;
  }

  /// Reads the attributes, which nobody asks for.
  void skip_attributes() {
    while (true) {
      const std::size_t before = at_;
      skip_blanks();
      if (at_ == text_.size()) fail("is cut short");
      if (text_[at_] == '>' || text_[at_] == '/') return;
      if (at_ == before) fail("has an attribute that is not set off");
      name_here();
      skip_blanks();
      if (!skip("=")) fail("has an attribute without a value");
      skip_blanks();
      const std::string_view quote = text_.substr(at_, 1);
      if (quote != "\"" && quote != "'") fail("has an attribute without quotes");
      ++at_;
      const std::size_t from = at_;
      skip_behind(quote);
      if (text_.substr(from, at_ - from).find('<') != std::string_view::npos) fail("has a < in an attribute");
    }
  }

  template <class Take>
  void begin_element(const Take& take, bool& had_root) {
    ++at_;
    if (open_.empty() && had_root) fail("has two documents");
    had_root = true;
    if (open_.size() == max_depth) fail("is nested deeper than 16 levels");
    const std::string_view name = name_here();
    open_.push_back({.name = std::string(name), .path_bytes = path_.size(), .content = {}});
    if (!path_.empty()) path_ += '/';
    path_ += name.substr(std::min(name.find(':') + 1, name.size()));
    skip_attributes();
    const bool is_empty = skip("/");
    if (!skip(">")) fail("has an element without an end");
    if (is_empty) close(take);
  }

  template <class Take>
  void end_element(const Take& take) {
    const std::string_view name = name_here();
    if (open_.empty() || open_.back().name != name) fail("has elements that overlap");
    skip_blanks();
    if (!skip(">")) fail("has an element without an end");
    close(take);
  }

  template <class Take>
  void close(const Take& take) {
    take(std::string_view(path_), static_cast<const std::string&>(open_.back().content));
    path_.resize(open_.back().path_bytes);
    open_.pop_back();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string path_;
  std::vector<element> open_;
};

}}}  // namespace millrace::detail
