// Reads what the head of an answer says of the bytes behind it, and decides whether they are those that were asked for.
//
//   const auto head = mr::detail::range_head(206, headers);
//   const auto said = mr::detail::judge({.first_byte = 100, .end_byte = 200}, known, head);
//   if (said.what == mr::detail::answer_kind::bytes) take_from(said.first_byte);
//
// A server may answer a range with 206, with 200 and the range, or with 200 and the whole object: all three are read.
// It may also answer with another range, another version of the object, or with bytes that it compressed on the way:
// none of these is ever taken for what was asked.
// Errors: none. Threads: values. Source: RFC 9110, sections 14 and 15; RFC 9112, section 6.
#pragma once

#include <millrace/adapt/remote/store/small_http.hpp>
#include <millrace/io/file/storage.hpp>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The bytes from first_byte on, up to but without end_byte.
struct asked_range {
  std::uint64_t first_byte = 0, end_byte = 0;
};

/// Returns the number that the text is; nothing if it is anything else.
inline std::optional<std::uint64_t> whole_number(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || wrong != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The content of the header Content-Range: "bytes 0-99/1234", "bytes 0-99/*", or, where there are no such bytes,
/// "bytes */1234".
struct content_range {
  std::optional<asked_range> range{};
  std::optional<std::uint64_t> total_bytes{};
};

/// Returns what the header's value says; nothing if it cannot be read.
inline std::optional<content_range> parse_content_range(std::string_view text) {
  if (text.size() < 6 || ascii_lower(text.substr(0, 6)) != "bytes ") return std::nullopt;
  text = trimmed(text.substr(6));
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  content_range said;
  const std::string_view range = text.substr(0, slash), total = text.substr(slash + 1);
  if (total != "*" && !(said.total_bytes = whole_number(total))) return std::nullopt;
  if (range == "*") return said.total_bytes ? std::optional(said) : std::nullopt;
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = whole_number(range.substr(0, dash)), last = whole_number(range.substr(dash + 1));
  if (!first || !last || *last < *first || *last == ~std::uint64_t{0}) return std::nullopt;
  if (said.total_bytes && *last >= *said.total_bytes) return std::nullopt;
  said.range = asked_range{*first, *last + 1};
  return said;
}

/// The head of an answer, as far as it tells of bytes.
struct range_head {
  int status = 0;
  std::string_view content_range{}, content_length{}, content_encoding{}, etag{}, last_modified{};

  range_head(int status_code, const header_list& headers)
      : status(status_code), content_range(header_value(headers, "content-range")),
        content_length(header_value(headers, "content-length")),
        content_encoding(header_value(headers, "content-encoding")), etag(header_value(headers, "etag")),
        last_modified(header_value(headers, "last-modified")) {}

  /// Returns the version of the object: its ETag, or else the time of its last change.
  std::string version() const {
    if (!etag.empty()) return std::string(etag);
    return last_modified.empty() ? std::string() : "changed " + std::string(last_modified);
  }
  /// Returns whether the answer is of the version; so is one that tells none.
  bool is_of(std::string_view known) const noexcept {
    constexpr std::string_view by_time = "changed ";
    if (known.empty()) return true;
    if (known.starts_with(by_time)) return last_modified.empty() || last_modified == known.substr(by_time.size());
    return etag.empty() || strong(etag) == strong(known);
  }

 private:
  // Some servers call a version weak in one answer and not in the next.
  static std::string_view strong(std::string_view tag) noexcept {
    return tag.starts_with("W/") ? tag.substr(2) : tag;
  }
};

enum class answer_kind : std::uint8_t {
  bytes,      ///< those that were asked for follow, or the first of them
  nothing,    ///< the object is empty
  replaced,   ///< the object is not the one that was read before
  wrong,      ///< it is no answer to this question
  other       ///< a redirect, a refusal
};

/// The meaning of an answer.
struct judged_answer {
  answer_kind what = answer_kind::other;
  std::uint64_t first_byte = 0;                 ///< of the object; comes first in the body
  std::uint64_t end_byte = 0;                   ///< of the object; the body ends before it
  std::optional<file_identity> identity{};      ///< of the object, where it was not known
  std::string problem{};                        ///< of `replaced` and `wrong`
};

/// Returns what an answer to a question for a range means. `known` is the identity of the object, if it has one.
inline judged_answer judge(const asked_range& asked, const file_identity* known, const range_head& head) {
  const auto wrong = [](std::string problem) {
    return judged_answer{.what = answer_kind::wrong, .problem = std::move(problem)};
  };
  const auto replaced = [](std::string problem) {
    return judged_answer{.what = answer_kind::replaced, .problem = std::move(problem)};
  };
  const auto size_text = [](std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; };
  const auto range = parse_content_range(head.content_range);
  if (head.status == 412) return replaced("the server says that it has another version now");
  if (known && (head.status == 404 || head.status == 410)) return replaced("the server has it no more");
  if (head.status == 416) {
    // S3 does not say how many bytes an empty object has. All others have the first one.
    if (!known && asked.first_byte == 0 && !range) return {.what = answer_kind::nothing, .identity = file_identity()};
    if (!range || !range->total_bytes) return wrong("the server has no such bytes");
    if (known && *range->total_bytes != known->size_bytes)
      return replaced("it had " + size_text(known->size_bytes) + " and has " + size_text(*range->total_bytes));
    if (known || *range->total_bytes > 0) return wrong("the server says that it has no such bytes");
    return {.what = answer_kind::nothing, .identity = file_identity{0, head.version()}};
  }
  if (head.status != 200 && head.status != 206) return {};
  if (!head.content_encoding.empty() && ascii_lower(head.content_encoding) != "identity")
    return wrong("the server compressed the bytes (" + std::string(head.content_encoding.substr(0, 40)) + ")");
  if (known && !head.is_of(known->version))
    return replaced("its version was " + known->version + " and is " + head.version());
  judged_answer said{.what = answer_kind::bytes};
  std::optional<std::uint64_t> total;
  if (range && range->range) {
    if (range->range->first_byte != asked.first_byte || range->range->end_byte > asked.end_byte)
      return wrong("the server sent other bytes: " + std::string(head.content_range.substr(0, 80)));
    said.first_byte = range->range->first_byte;
    said.end_byte = range->range->end_byte;
    total = range->total_bytes;
  } else if (head.status == 206 || !head.content_range.empty()) {
    return wrong("the server does not say which bytes it sent");
  } else {
    total = whole_number(head.content_length);
    if (!total && !known) return wrong("the server does not say how many bytes it has");
    said.end_byte = total ? *total : known->size_bytes;
  }
  if (known && total && *total != known->size_bytes)
    return replaced("it had " + size_text(known->size_bytes) + " and has " + size_text(*total));
  if (!known) {
    if (!total) return wrong("the server does not say how many bytes it has");
    said.identity = file_identity{*total, head.version()};
    if (*total == 0) said.what = answer_kind::nothing;
  }
  return said;
}

}}}  // namespace millrace::detail
