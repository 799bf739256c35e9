// One attempt of a fetch (the transfer of a range of bytes). An attempt is an HTTP request for the bytes that are still
// missing.
//
//   mr::detail::fetch_attempt attempt(job, settings, mr::detail::fetch_attempt::kind::first, now_ns);
//   curl_multi_add_handle(multi, attempt.handle());
//   ...                                                        // libcurl calls back while it performs
//   const auto problem = attempt.problem(code, settings);      // the reason why the attempt ended before its last byte
//
// The header of the response is checked before any byte is accepted (range_answer.hpp). Bytes are written directly to
// the memory of the fetch.
// Errors: the constructor throws std::bad_alloc. Threads: the network thread. Lifetime: an attempt keeps its job
// (fetch_job.hpp) alive.
#pragma once

#include <millrace/adapt/remote/store/curl_handle.hpp>
#include <millrace/adapt/remote/transfer/fetch_job.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

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
    return judged_.what == answer_kind::bytes && at_byte_ > range_.first_byte ? at_byte_ - range_.first_byte : 0;
  }
  const judged_answer& judged() const noexcept { return judged_; }
  const small_answer& answer() const noexcept { return answer_; }
  /// Returns whether this attempt delivered the last byte of the fetch.
  bool completed_fetch() const noexcept { return finished_; }

  /// Returns true if too few bytes arrived within `stall_limit`.
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
