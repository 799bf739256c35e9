// One attempt of a fetch (the transfer of a range of bytes). An attempt is an HTTP request for the bytes that are still
// missing.
//
//   using kind = mr::detail::fetch_attempt::kind;
//   mr::detail::fetch_attempt attempt(job, options, kind::plain, mr::detail::curl_easy());
//   curl_multi_add_handle(multi, attempt.handle());
//   curl_multi_perform(multi, &running);                       // calls the attempt's callbacks
//   const auto problem = attempt.problem(code, options);       // the reason why the attempt ended before its last byte
//
// The header of the response is checked before any byte is accepted (range_head). Bytes are written directly to the
// memory of the fetch.
// Errors: the constructor throws std::bad_alloc. Threads: the network thread. Lifetime: an attempt keeps its fetch_job
// (the state of the fetch) alive.
#pragma once

#include <millrace/adapt/remote/store/curl_handle.hpp>
#include <millrace/adapt/remote/store/object_access.hpp>
#include <millrace/adapt/remote/store/small_http.hpp>
#include <millrace/adapt/remote/transfer/range_fetch.hpp>
#include <millrace/adapt/remote/transfer/retry_rule.hpp>
#include <millrace/base/clock.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/storage.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Reads the header of the response to a range request, and decides whether the body contains the requested bytes.
//
// A server may send the range or the complete object. Both are supported. A body is never accepted if it is another
// range, a part of another version of the object, or compressed. Errors: none. Threads: not synchronized. Source: RFC
// 9110, sections 14 and 15; RFC 9112, section 6.

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
  /// Returns false if the response has another version. A missing version matches every version.
  bool is_of(std::string_view version) const noexcept;

 private:
  // Removes the mark W/ of a weak ETag, because some servers set this mark only in some responses.
  static std::string_view strong(std::string_view tag) noexcept { return tag.starts_with("W/") ? tag.substr(2) : tag; }
};

enum class http_answer_kind : std::uint8_t {
  bytes,      ///< the body contains the requested bytes, or only the first of them
  nothing,    ///< the object is empty
  replaced,   ///< the object differs from the object that was read earlier
  wrong,      ///< the response does not match the request
  other       ///< a redirect or a refusal
};

/// The classification of a response.
struct judged_answer {
  http_answer_kind what = http_answer_kind::other;
  std::uint64_t first_byte = 0;              ///< offset of the body's first byte in the object
  std::uint64_t end_byte = 0;                ///< offset of the body's end in the object, exclusive
  std::optional<file_identity> identity{};   ///< size and version of the object, if they were unknown before
  std::string problem{};                     ///< description of the problem, for `replaced` and `wrong`
};

/// Classifies the response to a range request. `expected` is the size and version of the object, or null if unknown.
judged_answer judge_answer(const byte_interval& requested, const file_identity* expected, const range_head& head);

// The state that the network thread stores for a fetch (the transfer of a range of bytes). It contains the number of
// attempts, the last problem, and the time of the next attempt.
//
// Errors: none. Threads: the network thread. Lifetime: the job keeps its fetch alive.

/// The reason why an attempt failed.
enum class failure_kind : std::uint8_t { none, not_connected, broken_off, stalled, busy, wrong, refused };

/// A failed attempt.
struct fetch_problem {
  failure_kind kind = failure_kind::none;
  std::string text{};
  bool is_final = false;
  std::int64_t least_pause_ns = 0;   ///< minimum pause that the server requests
};

/// A fetch in progress.
struct fetch_job {
  std::shared_ptr<range_fetch> fetch{};
  std::optional<addressed_request> sent{};   ///< next request; empty if it must be built again
  retry_state retry;
  std::int64_t due_ns = 0;
  int running = 0;   ///< number of running attempts
  int redirects = 0, recoveries = 0;
  bool hedged = false;
  bool on_new_connection = false;
  fetch_problem problem{};   ///< reason why the last attempt failed

  /// Schedules a new request after `seconds`.
  void wait(double seconds) noexcept {
    sent.reset();
    due_ns = read_clock_ns(CLOCK_MONOTONIC) + static_cast<std::int64_t>(1e9 * seconds);
  }
  /// Returns the range that has not arrived yet.
  byte_interval missing() const { return {fetch->offset_bytes() + fetch->arrived(), fetch->end_byte()}; }
};

inline std::int64_t steady_ns() noexcept { return read_clock_ns(CLOCK_MONOTONIC); }

/// Returns the description of a stalled attempt.
fetch_problem stalled_problem(const remote_options& o);
/// Returns the error for a fetch whose last attempt failed.
std::exception_ptr given_up(const fetch_job& job);
/// Returns the error for an object that was replaced.
std::exception_ptr replaced_object_error(const fetch_job& job, const std::string& what);

inline constexpr int max_redirects = 5;

/// Returns the error for a redirect that is not followed.
std::exception_ptr redirect_error(const fetch_job& job, const std::string& target, bool is_safe);
/// Returns the pause in ns that the server requests, or 0 if the server requests no pause.
std::int64_t requested_pause_ns(const small_answer& answer);

/// A request and its response.
class fetch_attempt {
 public:
  enum class kind : std::uint8_t { plain, hedge };
  static constexpr std::uint64_t max_skipped_bytes = std::uint64_t{64} << 20;
  static constexpr std::size_t max_refusal_bytes = std::size_t{16} << 10;

  fetch_attempt(std::shared_ptr<fetch_job> of, const remote_options& o, kind k, curl_easy handle);
  fetch_attempt(const fetch_attempt&) = delete;
  fetch_attempt& operator=(const fetch_attempt&) = delete;

  CURL* handle() const noexcept { return handle_.get(); }
  curl_easy take_handle() noexcept { return std::move(handle_); }
  const std::shared_ptr<fetch_job>& job() const noexcept { return job_; }
  const addressed_request& sent() const noexcept { return sent_; }
  bool is_hedge() const noexcept { return kind_ == kind::hedge; }
  std::int64_t begun_ns() const noexcept { return begun_ns_; }
  /// Returns the time at which the header of the response was complete, or 0 if it is not complete.
  std::int64_t first_byte_ns() const noexcept { return first_byte_ns_; }
  double first_byte_seconds() const noexcept { return 1e-9 * static_cast<double>(first_byte_ns_ - begun_ns_); }
  std::uint64_t received_bytes() const noexcept { return received_bytes_; }
  std::uint64_t requested_bytes() const noexcept { return range_.end_byte - range_.first_byte; }
  /// Returns the number of bytes that this attempt delivered.
  std::uint64_t accepted_bytes() const noexcept {
    return judged_.what == http_answer_kind::bytes && at_byte_ > range_.first_byte ? at_byte_ - range_.first_byte : 0;
  }
  const judged_answer& judged() const noexcept { return judged_; }
  const small_answer& answer() const noexcept { return answer_; }
  /// Returns whether this attempt delivered the last byte of the fetch.
  bool completed_fetch() const noexcept { return finished_; }

  /// Measures the transfer rate in consecutive periods of at least `stall_limit`, from the start of the attempt.
  /// Returns true at the end of a period in which the rate was below `stall_bytes_per_second`. Otherwise returns false.
  bool is_stalled(const remote_options& o, std::int64_t now_ns) noexcept;
  /// Returns the reason why the attempt ended before the last byte of the fetch.
  fetch_problem problem(CURLcode code, const remote_options& o) const;

 private:
  void set_up(const remote_options& o);
  static std::size_t take_header(char* data, std::size_t, std::size_t count, void* to) noexcept;
  static std::size_t take_body(char* data, std::size_t, std::size_t count, void* to) noexcept;
  bool take_line(std::string_view line);
  bool begin();
  bool take(std::span<const std::byte> bytes);

  const std::shared_ptr<fetch_job> job_;
  curl_easy handle_;
  const kind kind_;
  const byte_interval range_;
  const addressed_request sent_;
  curl_headers headers_{};
  char message_[CURL_ERROR_SIZE] = {};
  small_answer answer_{};
  judged_answer judged_{};
  std::uint64_t at_byte_ = 0, received_bytes_ = 0, marked_bytes_ = 0;
  const std::int64_t begun_ns_;
  std::int64_t first_byte_ns_ = 0, mark_ns_;
  bool finished_ = false;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/transfer/impl/fetch_attempt.inl>
#endif
