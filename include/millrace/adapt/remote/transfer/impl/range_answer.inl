// Definitions for range_answer.hpp.
#pragma once

#include <millrace/adapt/remote/transfer/range_answer.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::optional<content_range> parse_content_range(std::string_view text) {
  if (text.size() < 6 || ascii_lower(text.substr(0, 6)) != "bytes ") return std::nullopt;
  text = trimmed(text.substr(6));
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  content_range result;
  const std::string_view range = text.substr(0, slash), total = text.substr(slash + 1);
  if (total != "*" && !(result.total_bytes = decimal_number(total))) return std::nullopt;
  if (range == "*") return result.total_bytes ? std::optional(result) : std::nullopt;
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = decimal_number(range.substr(0, dash)), last = decimal_number(range.substr(dash + 1));
  if (!first || !last || *last < *first || *last == ~std::uint64_t{0}) return std::nullopt;
  if (result.total_bytes && *last >= *result.total_bytes) return std::nullopt;
  result.range = byte_interval{*first, *last + 1};
  return result;
}

MILLRACE_INLINE std::string range_head::version() const {
  if (!etag.empty()) return std::string(etag);
  return last_modified.empty() ? std::string() : "changed " + std::string(last_modified);
}

MILLRACE_INLINE bool range_head::is_of(std::string_view version) const noexcept {
  constexpr std::string_view by_time = "changed ";
  if (version.empty()) return true;
  if (version.starts_with(by_time)) return last_modified.empty() || last_modified == version.substr(by_time.size());
  return etag.empty() || strong(etag) == strong(version);
}

MILLRACE_INLINE judged_answer wrong_answer(std::string problem) {
  return {.what = answer_kind::wrong, .problem = std::move(problem)};
}

MILLRACE_INLINE judged_answer replaced_answer(std::string problem) {
  return {.what = answer_kind::replaced, .problem = std::move(problem)};
}

MILLRACE_INLINE judged_answer resized_answer(std::uint64_t known_bytes, std::uint64_t bytes) {
  return replaced_answer("it had " + std::to_string(known_bytes) + " bytes and has " + std::to_string(bytes) +
                         " bytes");
}

/// Classifies status 416, which means that the server does not have these bytes.
MILLRACE_INLINE judged_answer judge_no_bytes(const byte_interval& requested, const file_identity* expected,
                                             const range_head& head) {
  const auto range = parse_content_range(head.content_range);
  // S3 does not return the size of an empty object. Every other object has a first byte.
  if (!expected && requested.first_byte == 0 && !range)
    return {.what = answer_kind::nothing, .identity = file_identity()};
  if (!range || !range->total_bytes) return wrong_answer("the server does not have the requested range");
  if (expected && *range->total_bytes != expected->size_bytes)
    return resized_answer(expected->size_bytes, *range->total_bytes);
  if (expected || *range->total_bytes > 0) return wrong_answer("the server reports that the range does not exist");
  return {.what = answer_kind::nothing, .identity = file_identity{0, head.version()}};
}

/// Checks the range in a response.
MILLRACE_INLINE judged_answer judge_range(const byte_interval& requested, const byte_interval& sent,
                                          const range_head& head) {
  if (sent.first_byte != requested.first_byte || sent.end_byte > requested.end_byte)
    return wrong_answer("the server sent another range: " + std::string(head.content_range.substr(0, 80)));
  return {.what = answer_kind::bytes, .first_byte = sent.first_byte, .end_byte = sent.end_byte};
}

/// Classifies the statuses 200 and 206, after which bytes follow.
MILLRACE_INLINE judged_answer judge_bytes(const byte_interval& requested, const file_identity* expected,
                                          const range_head& head) {
  if (!head.content_encoding.empty() && ascii_lower(head.content_encoding) != "identity")
    return wrong_answer("the server compressed the bytes (" + std::string(head.content_encoding.substr(0, 40)) + ")");
  if (expected && !head.is_of(expected->version))
    return replaced_answer("its version was " + expected->version + " and is " + head.version());
  const auto range = parse_content_range(head.content_range);
  const bool has_range = range && range->range;
  if (!has_range && (head.status == 206 || !head.content_range.empty()))
    return wrong_answer("the server does not report which range it sent");
  const auto total = has_range ? range->total_bytes : decimal_number(head.content_length);
  judged_answer result{.what = answer_kind::bytes, .end_byte = total.value_or(expected ? expected->size_bytes : 0)};
  if (has_range) result = judge_range(requested, *range->range, head);
  if (result.what == answer_kind::wrong) return result;
  if (expected) return total && *total != expected->size_bytes ? resized_answer(expected->size_bytes, *total) : result;
  if (!total) return wrong_answer("the server does not report the size of the object");
  result.identity = file_identity{*total, head.version()};
  if (*total == 0) result.what = answer_kind::nothing;
  return result;
}

MILLRACE_INLINE judged_answer judge(const byte_interval& requested, const file_identity* expected,
                                    const range_head& head) {
  switch (head.status) {
    case 200:
    case 206: return judge_bytes(requested, expected, head);
    case 404:
    case 410: return expected ? replaced_answer("the server no longer has it") : judged_answer{};
    case 412: return replaced_answer("the server reports that it has another version now");
    case 416: return judge_no_bytes(requested, expected, head);
    default: return {};
  }
}

}}}   // namespace millrace::detail
