// Collects the statistics of a transfer_engine.
//
//   log.sent(running);   log.ended(attempt, running);   log.failed(mr::detail::failure_kind::busy);
//   const mr::remote_statistics now = log.statistics();
//
// Errors: none. Threads: any thread.
#pragma once

#include <millrace/adapt/remote/transfer/fetch_attempt.hpp>
#include <millrace/adapt/remote/transfer/fetch_errors.hpp>
#include <millrace/adapt/remote/transfer/remote_statistics.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The statistics of a transfer_engine.
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

}}}  // namespace millrace::detail
