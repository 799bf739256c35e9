// Defines what fetch_window.hpp declares.
#pragma once

#include <millrace/adapt/remote/transfer/fetch_window.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void fetch_window::adapt(std::size_t max_bytes) noexcept {
  if (given_bytes_ < least_bytes_ || spent_.now_ns < least_ns) return;
  const network_time spent = std::exchange(spent_, {});
  const double rate = static_cast<double>(std::exchange(given_bytes_, 0)) / static_cast<double>(spent.now_ns);
  if (bytes_before_ > 0 && rate < (bytes_ > bytes_before_ ? 1.125 : 0.875) * rate_) {
    bytes_ = std::exchange(bytes_before_, 0);
    least_bytes_ = 64 * std::uint64_t{bytes_};
    return;
  }
  // The best rate of late: a single one may be that of a pause of this machine.
  rate_ = bytes_before_ > 0 ? rate : std::max(rate, 0.95 * rate_);
  const bool is_busy = spent.idle_ns < spent.now_ns / 8;
  const std::size_t next =
      is_busy ? std::max(bytes_ / 2, first_bytes_) : std::max(std::min(2 * bytes_, max_bytes), bytes_);
  bytes_before_ = next == bytes_ ? 0 : bytes_;
  least_bytes_ = bytes_ = next;
}

}}}  // namespace millrace::detail
