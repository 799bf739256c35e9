// One HTTP request to a feeder and its answer, and the state of the feeder. A feeder is a program that computes rows
// for trainers on other machines (adapt/feeders.hpp).
//
//   mr::detail::feeder_attempt a(feeder, job, {.options = &options, .run = run, .max_row_bytes = 150'528});
//   curl_multi_add_handle(multi, a.handle.get());
//   ...                                              // libcurl receives rows, and the attempt stores them
//   const std::string problem = a.problem_of(code);  // empty: the answer is complete, with the status a.status()
//
// The window of a feeder is the maximum number of rows that are requested from it at the same time. The window is rate
// * (50 ms + 2 * latency), but at least 4 and at most 128 rows for each worker of the feeder. The rate is the number of
// rows per second that the feeder delivers, and the latency is the duration of its fastest answer. The window is
// divided into several requests, so that the feeder never waits for the network. Eight requests are usual. If a request
// would then have more than max_request_rows() rows, the window is divided into more requests. The maximum is two
// requests for each worker. Several trainers share a feeder by additive increase and multiplicative decrease: an answer
// with status 429 halves this trainer's share of the window, and each answer with rows increases the share.
// Errors: std::bad_alloc. Threads: the network thread. Lifetime: the feeder_state must outlive the attempt.
#pragma once

#include <millrace/adapt/feeders/feeder_hosts.hpp>
#include <millrace/adapt/feeders/feeder_options.hpp>
#include <millrace/adapt/feeders/row_protocol.hpp>
#include <millrace/adapt/remote/store/curl_handle.hpp>
#include <millrace/base/clock.hpp>

#include <memory>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Rows that the session requests, and the state of the HTTP requests for these rows.
struct feeder_job {
  row_slots slots;
  const row_range range{};
  int attempts = 0, running = 0;
  bool is_hedged = false;
  const void* last = nullptr;   // the feeder of the last attempt
};

/// The state of a feeder, as the trainer knows it.
struct feeder_state {
  static constexpr std::size_t least_window = 4, max_window = 128, requests_each = 2;   // for each worker
  static constexpr std::size_t usual_requests = 8;

  explicit feeder_state(feeder_host a) : at(std::move(a)) { statistics.address = at.text(); }

  /// Returns the number of requests that fill the window.
  std::size_t requests_to_fill() const noexcept {
    const std::size_t usual = std::max(usual_requests, (all_rows + request_rows - 1) / request_rows);
    return in_share(std::min(usual, requests_each * statistics.workers));
  }
  /// Returns whether another request may be sent. Requests may contain fewer rows than planned, so two more requests
  /// than requests_to_fill() are allowed.
  bool accepts_request() const noexcept {
    return statistics.in_flight < statistics.window && running < requests_to_fill() + 2;
  }
  bool may_compute(std::int64_t now_ns) const noexcept { return is_listed && statistics.is_ready && due_ns <= now_ns; }

  void record_hello() noexcept {
    statistics.is_ready = true;
    all_rows = std::max(all_rows, least_window * statistics.workers);
    statistics.window = in_share(all_rows);
    due_ns = 0;
    least_seconds = 0;   // the network may have changed
  }
  void record_answer(double seconds, std::size_t requested_rows, std::int64_t now_ns) noexcept {
    seconds = std::max(seconds, 1e-6);
    feeder_statistics& s = statistics;
    const double now_rate = static_cast<double>(requested_rows) / seconds;   // by Little's law
    rate += answers == 0 ? now_rate : (now_rate - rate) / 8;
    least_seconds = least_seconds == 0 ? seconds : std::min(seconds, least_seconds);
    s.wait_seconds += (seconds - s.wait_seconds) / static_cast<double>(++answers);
    s.rows_per_second = static_cast<double>(s.rows) / std::max(1e-9 * static_cast<double>(now_ns - first_ns), 1e-6);
    share = std::min(share + 1.0 / (16.0 * static_cast<double>(requests_to_fill())), 1.0);
    all_rows = std::clamp(static_cast<std::size_t>(rate * (0.05 + 2 * least_seconds)), least_window * s.workers,
                          max_window * s.workers);
    s.window = in_share(all_rows);
    failures = 0;
  }
  /// Halves the share after an answer with status 429. `sent_ns` is the time at which the request was sent. If the
  /// request was sent before the last reduction, the share does not change. The next request is sent when the next
  /// answer arrives, or after a pause if no other request is running.
  void record_busy(std::int64_t sent_ns, std::int64_t now_ns, std::int64_t pause_ns) noexcept {
    ++statistics.busy;
    if (sent_ns >= reduced_ns) {
      reduced_ns = now_ns;
      share = std::max(share / 2, 1.0 / 64);
      statistics.window = std::max<std::size_t>(statistics.window / 2, 1);
    }
    if (running <= 1) due_ns = now_ns + pause_ns;
  }
  /// Starts a random pause: until due_ns, no new request is sent to the feeder. Each failure doubles the maximum of the
  /// pause; an answer resets the maximum.
  void record_failure(const std::string& problem, double uniform, std::int64_t least_pause_ns) {
    const std::int64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
    ++statistics.failures;
    statistics.problem = printable(problem, 300);
    if (!std::exchange(statistics.is_ready, false) && due_ns > now_ns) return;   // sent before the pause began
    const double limit_ns = 20e6 * static_cast<double>(1 << std::min(failures++, 7));
    due_ns = now_ns + std::max(static_cast<std::int64_t>(uniform * std::min(limit_ns, 2e9)), least_pause_ns);
  }

  const feeder_host at;
  feeder_statistics statistics{};
  // all_rows: the window if `share` is 1. request_rows: maximum number of rows in one request.
  std::size_t all_rows = 0, request_rows = 1;
  double share = 1;   // part of all_rows that this trainer uses, from 0 to 1
  bool is_listed = true, is_greeting = false;
  std::size_t running = 0;   // number of running requests, including a handshake
  // due_ns: no request is sent before this time. first_ns: time of the first request for rows. reduced_ns: time of the
  // last reduction of `share`.
  std::int64_t due_ns = 0, first_ns = 0, reduced_ns = 0;
  double rate = 0, least_seconds = 0;
  std::uint64_t answers = 0;
  int failures = 0;   // number of failures since the last answer with rows

 private:
  std::size_t in_share(std::size_t all) const noexcept {
    return std::max<std::size_t>(static_cast<std::size_t>(share * static_cast<double>(all)), 1);
  }
};

/// One HTTP request and its answer. The request is either for rows, or a handshake: a request for the text that
/// describes the run of the feeder (row_protocol.hpp).
class feeder_attempt {
 public:
  static constexpr std::size_t max_body_bytes = std::size_t{64} << 10;   // limit for an answer without rows
  /// Returns the size of libcurl's buffer. Larger buffers need fewer calls of recv() and poll().
  static constexpr std::size_t buffer_bytes(std::size_t max_row_bytes) noexcept {
    return std::clamp(2 * max_row_bytes, max_body_bytes, std::size_t{512} << 10);
  }
  struct settings {
    const feeder_options* options = nullptr;
    std::string run{};   // the run id (row_protocol.hpp)
    std::size_t max_row_bytes = 0;
    row_buffers* buffers = nullptr;
  };

  /// `of` is null for a handshake. Until the attempt is destroyed, `f` counts the request as running, and its rows as
  /// in flight.
  feeder_attempt(feeder_state& f, std::shared_ptr<feeder_job> of, const settings& s)
      : to(f),
        job(std::move(of)),
        rows_({.rows = job ? job->range.count : 0, .max_row_bytes = s.max_row_bytes, .buffers = s.buffers}) {
    const feeder_options& o = *s.options;
    const std::string url = to.at.scheme + "://" + to.at.name() +
                            (job ? rows_path(s.run, job->range) : hello_path(s.run));
    if (!o.token.empty()) headers_.add("Authorization: Bearer " + o.token);
    headers_.add("Accept:");
    route_.add("::" + feeder_host::bracketed(to.at.numeric) + ":" + to.at.port);
    handle.set(CURLOPT_ERRORBUFFER, message_);
    handle.set(CURLOPT_URL, url.c_str());
    // Connects to the numeric address. The URL contains the name, because the certificate must match this name.
    handle.set(CURLOPT_CONNECT_TO, route_.get());
    handle.set(CURLOPT_PROXY, "");
    handle.set(CURLOPT_PROTOCOLS_STR, "http,https");
    handle.set(CURLOPT_HTTPHEADER, headers_.get());
    handle.set(CURLOPT_NOSIGNAL, 1L);
    const auto set_limit = [this](CURLoption option, double seconds) {   // 1 ms or more: 0 would mean libcurl's default
      handle.set(option, static_cast<long>(std::clamp(1'000 * seconds, 1.0, 86'400'000.0)));
    };
    set_limit(CURLOPT_CONNECTTIMEOUT_MS, o.connect_limit.count());
    set_limit(CURLOPT_TIMEOUT_MS, o.answer_limit.count());
    handle.set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    handle.set(CURLOPT_BUFFERSIZE, static_cast<long>(buffer_bytes(s.max_row_bytes)));
    handle.set(CURLOPT_TCP_KEEPALIVE, 1L);
    handle.set(CURLOPT_HTTP_CONTENT_DECODING, 0L);
    handle.set(CURLOPT_USERAGENT, "millrace");
    handle.set(CURLOPT_WRITEFUNCTION, &feeder_attempt::take_body);
    handle.set(CURLOPT_WRITEDATA, this);
    if (!o.ca_file.empty()) handle.set(CURLOPT_CAINFO, o.ca_file.c_str());
    ++to.running;
    if (!job) {
      to.is_greeting = true;
      return;
    }
    if (to.statistics.requests++ == 0) to.first_ns = sent_ns;
    requested_rows = to.statistics.in_flight += job->range.count;
    ++job->running;
    job->last = &to;
  }
  ~feeder_attempt() {
    --to.running;
    if (!job) {
      to.is_greeting = false;
      return;
    }
    --job->running;
    to.statistics.in_flight -= job->range.count;
  }
  feeder_attempt(const feeder_attempt&) = delete;
  feeder_attempt& operator=(const feeder_attempt&) = delete;

  int status() const noexcept { return static_cast<int>(number<long>(CURLINFO_RESPONSE_CODE)); }
  /// Returns the value of the header Retry-After, at most 60 s.
  std::int64_t pause_ns() const noexcept {
    return 1'000'000'000 * std::clamp<std::int64_t>(number<curl_off_t>(CURLINFO_RETRY_AFTER), 0, 60);
  }
  double seconds(std::int64_t now_ns) const noexcept { return 1e-9 * static_cast<double>(now_ns - sent_ns); }
  /// Stores how many workers the feeder has, if the answer contains this number.
  void read_workers() noexcept {
    curl_header* header = nullptr;
    if (curl_easy_header(handle.get(), workers_header, 0, CURLH_HEADER, -1, &header) != CURLHE_OK) return;
    if (const auto workers = decimal_number(header->value))
      to.statistics.workers = std::clamp<std::uint64_t>(*workers, 1, 4'096);
  }
  /// Returns "" if the answer is complete and valid. Otherwise returns the reason why it is not.
  std::string problem_of(CURLcode code) const {
    if (!problem_.empty()) return problem_;
    if (code != CURLE_OK) return message_[0] != '\0' ? message_ : curl_easy_strerror(code);
    if (job && status() == 200) try {
        rows_.finish();
      } catch (const data_error& e) {
        return e.message();
      }
    return {};
  }

  feeder_state& to;
  const std::shared_ptr<feeder_job> job;
  bool is_hedge = false;
  const std::int64_t sent_ns = read_clock_ns(CLOCK_MONOTONIC);
  std::size_t requested_rows = 0;   // number of rows in flight after this request was sent
  curl_easy handle{};
  std::string body{};   // body of an answer without rows

 private:
  static std::size_t take_body(char* data, std::size_t, std::size_t count, void* self) noexcept {
    auto& a = *static_cast<feeder_attempt*>(self);
    try {
      if (a.job && a.status() == 200) {
        a.rows_.add({reinterpret_cast<const std::byte*>(data), count}, [&a](const row_answer& row) {
          if (a.job->slots.put(row.row, row.bytes, row.crc)) ++a.to.statistics.rows;
          else if (crc32c(row.bytes) != row.crc) a.problem_ = "a row has a wrong checksum";
        });
      } else if (a.body.size() + count <= max_body_bytes) {
        a.body.append(data, count);
      } else {
        a.problem_ = "the answer is longer than 64 KiB";
      }
      return a.problem_.empty() ? count : 0;
    } catch (const error& e) {
      a.problem_ = e.message();
    } catch (...) {   // exceptions cannot pass libcurl's frames
    }
    return 0;
  }
  template <class Number>
  Number number(CURLINFO what) const noexcept {
    Number value = 0;
    static_cast<void>(curl_easy_getinfo(handle.get(), what, &value));
    return value;
  }

  curl_headers headers_{}, route_{};
  feeder_row_decoder rows_;
  std::string problem_{};
  char message_[CURL_ERROR_SIZE] = {};
};

}}}   // namespace millrace::detail
