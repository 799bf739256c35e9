// Reads the small XML documents of object stores, element by element.
//
//   mr::detail::xml_reader xml(text);
//   xml.for_each([&](std::string_view path, const std::string& content) {
//     if (path == "ListBucketResult/Contents/Key") keys.push_back(content);
//   });
//
// For each element, the callback receives the path of the element, and the text that is directly in the element, not in
// its children. A path consists of the names of all ancestors and the element's own name. Namespace prefixes and
// attributes are omitted. Comments, processing instructions, CDATA and the five predefined entities are supported.
// Errors: data_error with the offset if the text is not well-formed, has more than 16 levels, or exceeds 64 MiB. A
// document type is also an error, because it could define entities that expand without limit.
// Threads: no shared state; any thread. Source: XML 1.0.
#pragma once

#include <millrace/base/error.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Parses one document.
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
      if (skip("<?")) skip_past("?>");
      else if (skip("<!--")) skip_past("-->");
      else if (skip("<![CDATA[")) add_cdata();
      else if (skip("</")) end_element(take);
      else if (skip("<!")) fail("has a document type, which no store sends");
      else begin_element(take, had_root);
    }
    if (!open_.empty()) fail("ends inside an element");
    if (!had_root) fail("has no element");
  }

 private:
  static constexpr std::size_t max_bytes = std::size_t{64} << 20, max_depth = 16;

  /// An open element: its name, the length of its parent's path, and its text so far.
  struct element {
    std::string name{};
    std::size_t path_bytes = 0;
    std::string content{};
  };

  [[noreturn]] void fail(const char* problem) const;
  bool skip(std::string_view mark) noexcept;
  void skip_past(std::string_view mark);
  void skip_blanks() noexcept { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  void add_text(std::string_view raw);
  void add_cdata();
  void add_entity(std::string& content, std::string_view name) const;
  void add_character(std::string& content, std::string_view digits, std::uint32_t base) const;
  std::string_view name_here();
  /// Skips the attributes.
  void skip_attributes();

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

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/xml_reader.inl>
#endif
