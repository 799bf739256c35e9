// The state of a fetch (the transfer of a range of bytes) in the network thread: attempts, problems, and the time of
// the next attempt.
//
//   mr::detail::fetch_job job{.fetch = part, .sent = address, .retry = mr::detail::retry_state(now_ns)};
//   job.problem = {failure_kind::busy, "the server answered 503"};
//
// Errors: none. Threads: the network thread. Lifetime: the job keeps its fetch alive.
#pragma once

#include <millrace/adapt/remote/store/object_access.hpp>
#include <millrace/adapt/remote/transfer/range_answer.hpp>
#include <millrace/adapt/remote/transfer/range_fetch.hpp>
#include <millrace/adapt/remote/transfer/retry_rule.hpp>
#include <millrace/base/clock.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

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
std::exception_ptr replaced_error(const fetch_job& job, const std::string& what);

inline constexpr int max_redirects = 5;

/// Returns the error for a redirect that is not followed.
std::exception_ptr redirect_error(const fetch_job& job, const std::string& target, bool is_safe);
/// Returns the pause in ns that the server requests, or 0 if the server requests no pause.
std::int64_t requested_pause_ns(const small_answer& answer);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/transfer/impl/fetch_job.inl>
#endif
