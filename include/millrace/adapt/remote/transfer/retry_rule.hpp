// Decides whether and when a failed request is retried.
//
//   mr::detail::retry_state state(started_ns);
//   if (const auto pause_ns = state.next_pause_ns(options, now_ns, 0.3, asked_to_wait_ns)) send_at(now_ns + *pause_ns);
//   else give_up();
//
// The pause is a random time between 0 and a bound that doubles with each attempt. If the server sends a Retry-After
// header, the pause is at least as long as the header requests. An attempt that delivers a substantial part of its
// bytes is progress. A request fails if it has had `attempts` attempts since its last progress. It also fails if its
// next attempt would begin more than `limit` after this progress. The start of a request counts as progress. After
// `max_attempts` attempts, a request fails even if it progresses. Errors: none. Threads: not synchronized. Source:
// "Exponential Backoff And Jitter", Amazon Builders' Library.
#pragma once

#include <millrace/adapt/remote/transfer/remote_options.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the minimum time in seconds between the start of a request of `bytes` bytes and the start of the next
/// request. This time follows from bytes_per_second and requests_per_second of remote_options.
inline double retry_limits_in_seconds(const remote_options& o, std::uint64_t bytes) noexcept {
  double seconds = 0;
  if (o.bytes_per_second) seconds = static_cast<double>(bytes) / static_cast<double>(*o.bytes_per_second);
  if (o.requests_per_second) seconds = std::max(seconds, 1.0 / static_cast<double>(*o.requests_per_second));
  return seconds;
}

/// The history of a request that may be retried.
class retry_state {
 public:
  static constexpr int max_attempts = 100;
  // An attempt is progress if it delivers this number of bytes, or at least an eighth of the requested bytes.
  static constexpr std::uint64_t progress_bytes = std::uint64_t{256} << 10;

  explicit retry_state(std::int64_t now_ns) noexcept : progress_ns_(now_ns) {}

  /// Records the number of bytes that an attempt delivered.
  void record_progress(std::uint64_t bytes, std::uint64_t requested_bytes, std::int64_t now_ns) noexcept {
    if (bytes == 0 || bytes < std::min(progress_bytes, requested_bytes / 8)) return;
    failed_ = 0;
    progress_ns_ = now_ns;
  }
  /// Records a failed attempt. Returns the pause in ns before the next attempt, or nothing if the request must not be
  /// retried. `uniform` is a random number in [0, 1). `least_ns` is the minimum pause.
  std::optional<std::int64_t> next_pause_ns(const remote_retries& rule, std::int64_t now_ns, double uniform,
                                            std::int64_t least_ns) noexcept {
    ++failed_;
    ++attempts_;
    if (failed_ >= rule.attempts || attempts_ >= max_attempts) return std::nullopt;
    const double doubled = rule.first_pause.count() * static_cast<double>(1ULL << std::min(failed_ - 1, 30));
    const double bound = std::min(rule.longest_pause.count(), doubled);
    const std::int64_t pause = std::max(static_cast<std::int64_t>(1e9 * bound * uniform), least_ns);
    if (static_cast<double>(now_ns + pause - progress_ns_) > 1e9 * rule.limit.count()) return std::nullopt;
    return pause;
  }

  /// Returns the number of failed attempts.
  int attempts() const noexcept { return attempts_; }
  /// Returns the seconds since the last progress.
  double seconds(std::int64_t now_ns) const noexcept { return 1e-9 * static_cast<double>(now_ns - progress_ns_); }

 private:
  std::int64_t progress_ns_;
  int failed_ = 0, attempts_ = 0;   // failed_: attempts since the last progress
};

/// Decides whether a late request is hedged by a concurrent second request. A request is late if it has waited for its
/// first byte longer than `least_wait`, and much longer than most requests. If many requests are late, no request is
/// hedged, because the server is overloaded.
class hedge_rule {
 public:
  explicit hedge_rule(const remote_hedging& rule) noexcept : rule_(rule) {}

  /// Records the time that a request waited for its first byte.
  void record_first_byte(double seconds) noexcept {
    first_byte_times_[count_++ % std::size(first_byte_times_)] = static_cast<float>(seconds);
    allowed_ = std::min(allowed_ + rule_.share, 4.0);
    if (count_ % 32 == 0) find_limit();
  }

  /// Returns the time after which a request is late, in seconds.
  double late_seconds() const noexcept { return std::max(rule_.least_wait.count(), limit_); }

  /// Returns whether a late request may be hedged. If the result is true, counts the request as hedged. `late` and
  /// `running` are the numbers of late and of running requests.
  bool take(std::size_t late, std::size_t running) noexcept {
    if (rule_.share <= 0 || allowed_ < 1 || (late > 1 && 4 * late > running)) return false;
    allowed_ -= 1;
    return true;
  }

 private:
  void find_limit() noexcept {
    float sorted[std::size(decltype(first_byte_times_){})];
    const std::size_t count = std::min<std::size_t>(count_, std::size(first_byte_times_));
    std::copy(first_byte_times_, first_byte_times_ + count, sorted);
    const std::size_t at = count * 95 / 100;
    std::nth_element(sorted, sorted + at, sorted + count);
    limit_ = 3.0 * static_cast<double>(sorted[at]);
  }

  remote_hedging rule_;
  float first_byte_times_[256] = {};
  std::uint64_t count_ = 0;
  double allowed_ = 1, limit_ = 0;
};

}}}   // namespace millrace::detail
