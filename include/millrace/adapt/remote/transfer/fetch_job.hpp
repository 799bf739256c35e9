// The state of a fetch in the network's thread: how often it was sent, what came of it, when it is sent again.
//
//   mr::detail::fetch_job job{.fetch = part, .sent = address, .retry = mr::detail::retry_state(now_ns)};
//   job.problem = {failure_kind::busy, "the server answered 503"};
//
// Errors: none. Threads: the network's. Lifetime: it keeps its fetch alive.
#pragma once

#include <millrace/adapt/remote/store/object_access.hpp>
#include <millrace/adapt/remote/transfer/range_answer.hpp>
#include <millrace/adapt/remote/transfer/range_fetch.hpp>
#include <millrace/adapt/remote/transfer/retry_rule.hpp>
#include <millrace/base/clock.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Why an attempt failed.
enum class failure_kind : std::uint8_t { none, not_connected, broken_off, stalled, busy, wrong, refused };

/// A failed attempt.
struct fetch_problem {
  failure_kind kind = failure_kind::none;
  std::string text{};
  bool is_final = false;
  std::int64_t least_pause_ns = 0;   ///< which the server asks for
};

/// A fetch on its way.
struct fetch_job {
  std::shared_ptr<range_fetch> fetch{};
  std::optional<addressed_request> sent{};   ///< how the next attempt is addressed; none: it is to be addressed anew
  retry_state retry;
  std::int64_t due_ns = 0;
  int running = 0;        ///< attempts now
  int redirects = 0, healings = 0;
  bool hedged = false;
  bool on_new_connection = false;
  fetch_problem problem{};   ///< the last one

  /// Lets it be addressed again after a pause.
  void wait(double seconds) noexcept {
    sent.reset();
    due_ns = read_clock_ns(CLOCK_MONOTONIC) + static_cast<std::int64_t>(1e9 * seconds);
  }
  /// Returns the range that is not there yet.
  byte_interval missing() const { return {fetch->offset_bytes() + fetch->arrived(), fetch->end_byte()}; }
};

}}}  // namespace millrace::detail
