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

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The bytes from first_byte on, up to but without end_byte.
struct byte_interval {
  std::uint64_t first_byte = 0, end_byte = 0;
};

/// Returns the number that the text is; nothing if it is anything else.
std::optional<std::uint64_t> whole_number(std::string_view text) noexcept;

/// The content of the header Content-Range: "bytes 0-99/1234", "bytes 0-99/*", or, where there are no such bytes,
/// "bytes */1234".
struct content_range {
  std::optional<byte_interval> range{};
  std::optional<std::uint64_t> total_bytes{};
};

/// Returns what the header's value says; nothing if it cannot be read.
std::optional<content_range> parse_content_range(std::string_view text);

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
  std::string version() const;
  /// Returns whether the answer is of the version; so is one that tells none.
  bool is_of(std::string_view version) const noexcept;

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
judged_answer judge(const byte_interval& requested, const file_identity* expected, const range_head& head);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/transfer/impl/range_answer.inl>
#endif
