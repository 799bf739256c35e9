// The network thread of a remote storage. The thread requests ranges of objects, retries failed requests, and passes
// the received bytes to waiting readers.
//
//   mr::detail::transfer_engine engine({.requests = 64});
//   engine.submit(part);                       // any thread; after that: part->wait_for(bytes)
//   part->abandon();  engine.sweep();          // any thread, to cancel the fetch
//
// One thread transfers the bytes of all requests. If an attempt (one HTTP request) fails, stalls or is interrupted,
// another attempt requests the missing bytes. If the first byte of a response is late, the engine may hedge the
// request: it sends a second request concurrently. Each byte is used from the response that delivers it first.
// Errors: the reader of a failed fetch gets an io_error. The error names the file, the server's message, the number of
// failed attempts, and the time since the last progress.
// Threads: any thread. Lifetime: the destructor stops all requests, but does not end their fetches. A reader that still
// waits for a fetch then waits forever.
#pragma once

#include <millrace/adapt/remote/transfer/fetch_attempt.hpp>
#include <millrace/adapt/remote/transfer/fetch_window.hpp>
#include <millrace/adapt/remote/transfer/remote_statistics.hpp>
#include <millrace/adapt/remote/transfer/request_addresses.hpp>
#include <millrace/base/random.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Collects the statistics of a transfer_engine. Any thread may call its functions.
class transfer_log {
 public:
  void sent(bool is_hedge, std::size_t in_flight) {
    const std::lock_guard lock(mutex_);
    ++statistics_.requests;
    statistics_.hedges += is_hedge;
    statistics_.in_flight = in_flight;
  }
  void ended(const fetch_attempt& attempt, std::size_t in_flight) {
    long connections = 0;
    curl_easy_getinfo(attempt.handle(), CURLINFO_NUM_CONNECTS, &connections);
    const std::lock_guard lock(mutex_);
    statistics_.in_flight = in_flight;
    statistics_.bytes += attempt.received_bytes();
    statistics_.connections += static_cast<std::uint64_t>(std::max(connections, 0L));
    statistics_.hedges_won += attempt.is_hedge() && attempt.completed_fetch();
    if (attempt.first_byte_ns() == 0) return;
    ++first_bytes_;
    first_byte_seconds_ += attempt.first_byte_seconds();
    if (attempt.received_bytes() < (std::size_t{64} << 10)) return;
    body_seconds_ += 1e-9 * static_cast<double>(steady_ns() - attempt.first_byte_ns());
    body_bytes_ += static_cast<double>(attempt.received_bytes());
  }
  void failed(failure_kind kind) {
    const std::lock_guard lock(mutex_);
    ++statistics_.retries;
    statistics_.not_connected += kind == failure_kind::not_connected;
    statistics_.broken_off += kind == failure_kind::broken_off;
    statistics_.stalled += kind == failure_kind::stalled;
    statistics_.busy += kind == failure_kind::busy;
    statistics_.wrong_answers += kind == failure_kind::wrong;
    statistics_.keys_renewed += kind == failure_kind::refused;
  }
  void redirected() {
    const std::lock_guard lock(mutex_);
    ++statistics_.redirects;
  }
  void given_up() {
    const std::lock_guard lock(mutex_);
    ++statistics_.failures;
  }
  remote_statistics statistics() const {
    const std::lock_guard lock(mutex_);
    remote_statistics f = statistics_;
    if (first_bytes_ > 0) f.first_byte_seconds = first_byte_seconds_ / static_cast<double>(first_bytes_);
    if (body_seconds_ > 0) f.bytes_per_second_each = body_bytes_ / body_seconds_;
    return f;
  }

 private:
  mutable std::mutex mutex_;   // guards all members below
  remote_statistics statistics_{};
  std::uint64_t first_bytes_ = 0;
  double first_byte_seconds_ = 0, body_seconds_ = 0, body_bytes_ = 0;
};

/// Fetches ranges of remote objects.
class transfer_engine {
 public:
  explicit transfer_engine(remote_options o);
  transfer_engine(const transfer_engine&) = delete;
  transfer_engine& operator=(const transfer_engine&) = delete;
  ~transfer_engine();
  /// Queues a fetch after all fetches submitted earlier. Throws the errors of request_addresses::address().
  void submit(std::shared_ptr<range_fetch> fetch);
  /// Stops the requests of abandoned fetches.
  void sweep() noexcept;

  /// Returns the names that begin with `prefix`, sorted.
  std::vector<std::string> list(const std::string& prefix) { return addresses_.list(prefix); }

  remote_statistics statistics() const { return log_.statistics(); }

  /// Returns the current time, and the total time that the network thread has waited for the network.
  network_time now() const noexcept { return {steady_ns(), idle_ns_.load(std::memory_order_relaxed)}; }

 private:
  using job_pointer = std::shared_ptr<fetch_job>;
  using attempt_pointer = std::unique_ptr<fetch_attempt>;

  static constexpr int max_recoveries = 16;

  void run() noexcept;
  /// Does the work that is due, and waits for more work. Returns false if the engine is being destroyed.
  bool run_once();
  /// Starts the requests that are due, within the limits of remote_options. Returns the time at which the next request
  /// is due. Returns 0 if the next start must first wait for a new fetch or for the end of a request.
  std::int64_t start_due(std::int64_t now_ns);
  void start(const job_pointer& job, fetch_attempt::kind kind);
  void ended(const fetch_attempt& attempt);
  void finish(CURL* handle, CURLcode code);
  attempt_pointer remove_attempt(std::unordered_map<CURL*, attempt_pointer>::iterator entry);
  /// Decides how to continue a fetch after an attempt has ended.
  void conclude(const fetch_attempt& attempt, CURLcode code);
  void refused(const fetch_attempt& attempt);
  void follow(const fetch_attempt& attempt);
  /// Schedules a retry for the missing bytes of a fetch.
  void retry_later(const job_pointer& job, fetch_problem problem);
  void retry_now(const job_pointer& job);
  void fail(const job_pointer& job, std::exception_ptr why);
  /// Ends the remaining attempts of a fetch that has ended.
  void stop(const job_pointer& job);
  void drop_abandoned();
  /// Ends stalled attempts, and hedges late attempts.
  void handle_late_requests(std::int64_t now_ns);
  void end_stalled(CURL* handle);
  std::int64_t check_period_ns() const noexcept;
  void fail_all(const std::exception_ptr& why) noexcept;

  const remote_options options_;
  mutable request_addresses addresses_;
  curl_multi multi_;
  transfer_log log_;
  std::atomic<std::int64_t> idle_ns_{0};

  mutable std::mutex mutex_;   // guards the members in the next two lines
  std::vector<job_pointer> submitted_;
  bool ending_ = false, sweeping_ = false;

  // Only the network thread uses the following members.
  std::deque<job_pointer> waiting_;
  std::unordered_map<CURL*, attempt_pointer> running_;
  std::vector<curl_easy> idle_;
  hedge_rule hedges_;
  rng random_{{.seed = static_cast<std::uint64_t>(steady_ns())}};
  std::int64_t next_check_ns_ = 0, allowed_ns_ = 0;
  bool connected_ = false;

  std::thread thread_;   // the last member, because the thread uses all other members
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/transfer/impl/transfer_engine.inl>
#endif
