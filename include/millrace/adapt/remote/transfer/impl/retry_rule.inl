// Defines what retry_rule.hpp declares.
#pragma once

#include <millrace/adapt/remote/transfer/retry_rule.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE double seconds_of_limits(const remote_options& o, std::uint64_t bytes) noexcept {
  double seconds = 0;
  if (o.bytes_per_second > 0) seconds = static_cast<double>(bytes) / static_cast<double>(o.bytes_per_second);
  if (o.requests_per_second > 0) seconds = std::max(seconds, 1.0 / static_cast<double>(o.requests_per_second));
  return seconds;
}

MILLRACE_INLINE void retry_state::brought(std::uint64_t bytes, std::uint64_t asked_bytes,
                                          std::int64_t now_ns) noexcept {
  if (bytes == 0 || bytes < std::min(progress_bytes, asked_bytes / 8)) return;
  failed_ = 0;
  progress_ns_ = now_ns;
}

MILLRACE_INLINE std::optional<std::int64_t> retry_state::next_pause_ns(const remote_retries& rule, std::int64_t now_ns,
                                                                       double drawn, std::int64_t least_ns) noexcept {
  ++failed_;
  ++attempts_;
  if (failed_ >= rule.attempts || attempts_ >= max_attempts) return std::nullopt;
  const double doubled = rule.first_pause_seconds * static_cast<double>(1ULL << std::min(failed_ - 1, 30));
  const double bound = std::min(rule.longest_pause_seconds, doubled);
  const std::int64_t pause = std::max(static_cast<std::int64_t>(1e9 * bound * drawn), least_ns);
  if (static_cast<double>(now_ns + pause - progress_ns_) > 1e9 * rule.seconds) return std::nullopt;
  return pause;
}

MILLRACE_INLINE void hedge_rule::came(double seconds) noexcept {
  seen_[count_++ % std::size(seen_)] = static_cast<float>(seconds);
  allowed_ = std::min(allowed_ + rule_.share, 4.0);
  if (count_ % 32 == 0) find_limit();
}

MILLRACE_INLINE bool hedge_rule::take(std::size_t late, std::size_t running) noexcept {
  if (rule_.share <= 0 || allowed_ < 1 || (late > 1 && 4 * late > running)) return false;
  allowed_ -= 1;
  return true;
}

MILLRACE_INLINE void hedge_rule::find_limit() noexcept {
  float sorted[std::size(decltype(seen_){})];
  const std::size_t count = std::min<std::size_t>(count_, std::size(seen_));
  std::copy(seen_, seen_ + count, sorted);
  const std::size_t at = count * 95 / 100;
  std::nth_element(sorted, sorted + at, sorted + count);
  limit_ = 3.0 * static_cast<double>(sorted[at]);
}

}}}  // namespace millrace::detail
