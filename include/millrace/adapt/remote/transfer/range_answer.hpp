// Reads the header of the response to a range request, and decides whether the body contains the requested bytes.
//
//   const auto head = mr::detail::range_head(206, headers);
//   const auto result = mr::detail::judge({.first_byte = 100, .end_byte = 200}, expected, head);
//   if (result.what == mr::detail::answer_kind::bytes) take_from(result.first_byte);
//
// A server may send the range or the complete object. Both are supported. A body is never accepted if it is another
// range, a part of another version of the object, or compressed. Errors: none. Threads: not synchronized. Source: RFC
// 9110, sections 14 and 15; RFC 9112, section 6.
#pragma once

#include <millrace/adapt/remote/store/small_http.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/storage.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The bytes from first_byte up to, but not including, end_byte.
struct byte_interval {
  std::uint64_t first_byte = 0, end_byte = 0;
};

/// The value of the header Content-Range, such as "bytes 0-99/1234" or "bytes 0-99/*". If the range does not exist, the
/// value is "bytes */1234".
struct content_range {
  std::optional<byte_interval> range{};
  std::optional<std::uint64_t> total_bytes{};
};

/// Parses the value of the header. Returns nothing if the value is invalid.
std::optional<content_range> parse_content_range(std::string_view text);

/// The parts of a response header that describe the body.
struct range_head {
  int status = 0;
  std::string_view content_range{}, content_length{}, content_encoding{}, etag{}, last_modified{};

  range_head(int status_code, const header_list& headers)
      : status(status_code),
        content_range(header_value(headers, "content-range")),
        content_length(header_value(headers, "content-length")),
        content_encoding(header_value(headers, "content-encoding")),
        etag(header_value(headers, "etag")),
        last_modified(header_value(headers, "last-modified")) {}

  /// Returns the version of the object: its ETag or, without an ETag, its modification time.
  std::string version() const;
  /// Returns whether the response has this version, or has no version.
  bool is_of(std::string_view version) const noexcept;

 private:
  // Ignores the mark of a weak version, because some servers set this mark only in some responses.
  static std::string_view strong(std::string_view tag) noexcept { return tag.starts_with("W/") ? tag.substr(2) : tag; }
};

enum class answer_kind : std::uint8_t {
  bytes,      ///< the body contains the requested bytes, or only the first of them
  nothing,    ///< the object is empty
  replaced,   ///< the object differs from the object that was read earlier
  wrong,      ///< the response does not match the request
  other       ///< a redirect or a refusal
};

/// The classification of a response.
struct judged_answer {
  answer_kind what = answer_kind::other;
  std::uint64_t first_byte = 0;              ///< offset of the body's first byte in the object
  std::uint64_t end_byte = 0;                ///< offset of the body's end in the object, exclusive
  std::optional<file_identity> identity{};   ///< size and version of the object, if they were unknown
  std::string problem{};                     ///< description of the problem, for `replaced` and `wrong`
};

/// Classifies the response to a range request. `expected` is the size and version of the object, or null if unknown.
judged_answer judge(const byte_interval& requested, const file_identity* expected, const range_head& head);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/transfer/impl/range_answer.inl>
#endif
