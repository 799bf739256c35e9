// One HTTP request to a feeder and its answer, and the state of the feeder.
//
//   mr::detail::feeder_attempt a(feeder, part, {.options = &options, .run = run, .max_row_bytes = 150'528});
//   curl_multi_add_handle(multi, a.handle.get());
//   ...                                              // while libcurl receives rows, it stores them
//   const std::string problem = a.problem_of(code);  // empty: the answer is complete, with the status a.status()
//
// The window of a feeder is the maximum number of rows that are requested from it at the same time. The window is rate
// * (50 ms + 2 * latency), but at least four rows for each worker of the feeder. The rate is the number of rows per
// second that the feeder delivers, and the latency is the duration of its fastest answer. The window is divided into
// several requests, so that the feeder never waits for the network. There are eight requests, or more if their rows
// would exceed max_request_rows(), but at most two for each worker. Several trainers share a feeder by additive
// increase and multiplicative decrease: an answer with status 429 halves this trainer's share of the window, and each
// answer with rows increases the share.
// Errors: std::bad_alloc. Threads: the network thread. Lifetime: the feeder_state must outlive the attempt.
#pragma once

#include <millrace/adapt/feeders/feeder_hosts.hpp>
#include <millrace/adapt/feeders/feeder_options.hpp>
#include <millrace/adapt/feeders/row_protocol.hpp>
#include <millrace/adapt/remote/store/curl_transfers.hpp>
#include <millrace/adapt/remote/transfer/retry_rule.hpp>
#include <millrace/base/clock.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A host and one of its addresses.
struct feeder_address {
  feeder_host of{};
  std::string numeric{};

  std::string text() const { return of.name() + " (" + numeric + ")"; }
};

/// The part of a request of the session that is sent to one feeder.
struct feeder_part {
  feeder_part(std::shared_ptr<row_slots> of, const row_range& rows, std::atomic<std::size_t>& all)
      : slots(std::move(of)), range(rows), outstanding(all) {}
  ~feeder_part() { subtract(); }
  /// Subtracts the rows of the part from the number of outstanding rows. Only the first call has an effect.
  void subtract() noexcept {
    if (!std::exchange(is_subtracted, true)) outstanding.fetch_sub(range.count);
  }

  const std::shared_ptr<row_slots> slots;   // of the complete request
  row_range range;
  std::atomic<std::size_t>& outstanding;
  std::size_t first = 0;   // number of the first row in the complete request
  int attempts = 0, running = 0;
  bool is_hedged = false, is_done = false, is_subtracted = false;
  const void* last = nullptr;   // the feeder of the last attempt
};

/// The state of a feeder, as the trainer knows it.
struct feeder_state {
  static constexpr std::size_t least_window = 4, max_window = 128, requests_each = 2;   // for each worker
  static constexpr std::size_t usual_requests = 8;

  explicit feeder_state(feeder_address a) : at(std::move(a)) { statistics.address = at.text(); }

  /// Returns the number of requests that fill the window.
  std::size_t requests_to_fill(std::size_t more = 0) const noexcept {
    const std::size_t most = requests_each * statistics.workers;
    const std::size_t usual = std::max(usual_requests, (all_rows + request_rows - 1) / request_rows);
    return in_share(std::min(usual, most) + more);
  }
  /// Returns whether another request may be sent. Requests may contain fewer rows than planned, so two more requests
  /// than requests_to_fill() are allowed.
  bool accepts_request() const noexcept {
    return statistics.in_flight < statistics.window && running < requests_to_fill(2);
  }
  bool may_compute(std::int64_t now_ns) const noexcept { return is_listed && statistics.is_ready && due_ns <= now_ns; }
  void record_hello() noexcept;
  void record_answer(double seconds, std::size_t requested_rows, std::int64_t now_ns) noexcept;
  /// Halves the share after an answer with status 429. `sent_ns` is the time at which the request was sent. If the
  /// request was sent before the last reduction, the call has no effect. The next request is sent when another answer
  /// arrives. If no other request is running, it is sent after a pause.
  void record_busy(std::int64_t sent_ns, std::int64_t now_ns, std::int64_t pause_ns) noexcept;
  /// Pauses the feeder for a random time. Each failure doubles the maximum pause; an answer resets the maximum.
  void record_failure(const std::string& problem, double uniform, std::int64_t least_pause_ns);

  const feeder_address at;
  feeder_statistics statistics{};
  std::size_t all_rows = 0, request_rows = 1;   // the window with a share of 1, and the maximum for a request
  double share = 1;                             // part of the window that this trainer uses, from 0 to 1
  std::int64_t reduced_ns = 0;
  bool is_listed = true;
  std::size_t running = 0;   // requests, including a handshake
  bool is_greeting = false;
  std::int64_t due_ns = 0, progress_ns = 0, first_ns = 0;   // no request before due_ns
  double rate = 0, least_seconds = 0, slowest_seconds = 0, total_seconds = 0;
  std::uint64_t answers = 0;
  retry_state retry{0};

 private:
  std::size_t in_share(std::size_t all) const noexcept {
    return std::max<std::size_t>(static_cast<std::size_t>(share * static_cast<double>(all)), 1);
  }
};

/// One HTTP request and its answer. The request is either for the rows of a part, or a handshake.
struct feeder_attempt {
  static constexpr std::size_t max_body_bytes = std::size_t{64} << 10;   // limit for an answer without rows
  /// Returns the size of libcurl's buffer. Larger buffers need fewer calls of recv() and poll().
  static constexpr std::size_t buffer_bytes(std::size_t max_row_bytes) noexcept {
    return std::clamp(2 * max_row_bytes, max_body_bytes, std::size_t{512} << 10);
  }
  struct settings {
    const feeder_options* options = nullptr;
    std::string run{};   // the run id
    std::size_t max_row_bytes = 0;
    row_buffers* buffers = nullptr;
  };

  /// `of` is null for a handshake.
  feeder_attempt(feeder_state& f, std::shared_ptr<feeder_part> of, const settings& s);
  feeder_attempt(const feeder_attempt&) = delete;
  feeder_attempt& operator=(const feeder_attempt&) = delete;

  /// Counts the request and its rows as running, or as ended.
  void count_start() noexcept;
  void count_end() noexcept;
  int status() const noexcept { return static_cast<int>(number(CURLINFO_RESPONSE_CODE)); }
  std::int64_t pause_ns() const noexcept;   ///< header Retry-After, at most 60 s
  double seconds(std::int64_t now_ns) const noexcept { return 1e-9 * static_cast<double>(now_ns - sent_ns); }
  /// Stores how many workers the feeder has, if the answer contains this number.
  void read_workers() noexcept;
  /// Returns the reason why the answer is incomplete or not valid, or "" if there is none.
  std::string problem_of(CURLcode code) const;

  feeder_state& to;
  const std::shared_ptr<feeder_part> part;
  bool is_hedge = false;
  const std::int64_t sent_ns = read_clock_ns(CLOCK_MONOTONIC);
  std::size_t requested_rows = 0;   // rows that the feeder had to compute when the request was sent
  curl_easy handle{};
  std::string body{};   // of an answer without rows

 private:
  static std::size_t take_body(char* data, std::size_t, std::size_t count, void* self) noexcept;
  bool take_rows(std::span<const std::byte> bytes);
  template <class Number = long>
  Number number(CURLINFO what) const noexcept {
    Number value = 0;
    static_cast<void>(curl_easy_getinfo(handle.get(), what, &value));
    return value;
  }

  curl_headers headers_{}, route_{};
  std::optional<feeder_row_decoder> rows_{};
  std::string problem_{};
  char message_[CURL_ERROR_SIZE] = {};
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/feeders/impl/feeder_attempt.inl>
#endif
