// The maximum number of bytes that are read ahead. It is 64 MiB at first, and grows if the storage requires it.
//
//   mr::detail::read_ahead_limit limit(std::size_t{256} << 20);     // 256 MiB: the maximum
//   if (ahead >= limit.bytes()) limit.reached();                    // the reader waits
//   limit.record_backlog(samples_that_wait_for_workers);            // if 0, and readers waited: doubles the limit
//
// If readers wait because of the limit, and the workers then become idle during a slow read, the limit was too low. If
// readers never reach the limit, the limit does not change.
// Errors: none. Threads: any thread may call bytes(). The other functions require the lock of the read stage.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A limit in bytes that grows on demand.
class read_ahead_limit {
 public:
  static constexpr std::size_t first_bytes = std::size_t{64} << 20;

  /// `most` is the highest limit in bytes.
  explicit read_ahead_limit(std::size_t most) noexcept : most_(most), now_(std::min(most, first_bytes)) {}

  /// Returns the current limit.
  std::size_t bytes() const noexcept { return now_.load(std::memory_order_relaxed); }
  /// Records that a reader waits because of the limit.
  void reached() noexcept { reached_ = true; }
  /// Records the number of samples that wait for the workers at the end of a read. The number 0 has no effect before
  /// the first samples have arrived, because the shuffle window is still being filled.
  void record_backlog(std::uint64_t samples) noexcept {
    if (samples > 0) fed_ = true;
    if (samples > 0 || !fed_ || !reached_) return;
    reached_ = false;
    now_.store(bytes() > most_ / 2 ? most_ : 2 * bytes(), std::memory_order_relaxed);
  }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> now_;
  bool reached_ = false, fed_ = false;
};

}}}  // namespace millrace::detail
