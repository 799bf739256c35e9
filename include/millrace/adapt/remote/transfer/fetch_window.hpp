// Determines how many bytes of a file are prefetched (the window of the file).
//
//   mr::detail::fetch_window window(8 << 20);
//   if (must_wait) window.adapt(128 << 20);                // the reader must wait: may change the window
//   window.record_consumed(bytes, {now_ns, idle_ns});                 // the reader has consumed bytes
//   mr::detail::fetch_window next = window.of_next_file(); // begins with the window of this file
//
// A reader waits if the network is slow, or if the window is too small. A larger window needs memory, and helps only if
// the window is too small. Therefore the window is doubled step by step. If a doubling does not speed up the reader by
// at least an eighth, the window returns to its previous size. The window then remains unchanged until the reader has
// consumed 64 windows of data. If the network thread is idle for less than an eighth of the time, the thread is the
// bottleneck, and a larger window cannot help. In this case, the window is halved instead of doubled. The window never
// becomes smaller than its initial size. If halving slows down the reader by more than an eighth, the window returns to
// its previous size.
// Errors: none. Threads: one at a time.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A point in time, and the total idle time of the network thread until this point.
struct network_time {
  std::int64_t now_ns = 0, idle_ns = 0;
};

/// The number of bytes to prefetch for one reader.
class fetch_window {
 public:
  explicit fetch_window(std::size_t bytes) noexcept : first_bytes_(bytes), bytes_(bytes) {}

  std::size_t bytes() const noexcept { return bytes_; }
  /// Returns whether the reader has consumed bytes of this file.
  bool has_consumed() const noexcept { return begun_; }

  /// Adapts the window. Call it when the reader must wait.
  void adapt(std::size_t max_bytes) noexcept {
    if (consumed_bytes_ < least_bytes_ || spent_.now_ns < least_ns) return;
    const network_time spent = std::exchange(spent_, {});
    const double rate = static_cast<double>(std::exchange(consumed_bytes_, 0)) / static_cast<double>(spent.now_ns);
    if (bytes_before_ > 0 && rate < (bytes_ > bytes_before_ ? 1.125 : 0.875) * rate_) {
      bytes_ = std::exchange(bytes_before_, 0);
      least_bytes_ = 64 * std::uint64_t{bytes_};
      return;
    }
    // Keeps the best recent rate, because a single measurement may include a pause of this machine.
    rate_ = bytes_before_ > 0 ? rate : std::max(rate, 0.95 * rate_);
    const bool is_busy = spent.idle_ns < spent.now_ns / 8;
    const std::size_t next = is_busy ? std::max(bytes_ / 2, first_bytes_)
                                     : std::max(std::min(2 * bytes_, max_bytes), bytes_);
    bytes_before_ = next == bytes_ ? 0 : bytes_;
    least_bytes_ = bytes_ = next;
  }
  /// Records bytes that the reader has consumed. For each file, ignores the bytes of the first call, because the reader
  /// of these bytes also waited for a connection.
  void record_consumed(std::size_t bytes, const network_time& now) noexcept {
    if (std::exchange(begun_, true)) {
      consumed_bytes_ += bytes;
      spent_.now_ns += now.now_ns - consumed_at_.now_ns;
      spent_.idle_ns += now.idle_ns - consumed_at_.idle_ns;
    }
    consumed_at_ = now;
  }
  /// Returns the window with which the next file begins.
  fetch_window of_next_file() const noexcept {
    fetch_window next = *this;
    next.begun_ = false;
    return next;
  }

 private:
  static constexpr std::int64_t least_ns = 10'000'000;   // a rate over a shorter time is not significant

  std::size_t first_bytes_, bytes_;
  std::size_t bytes_before_ = 0;   // the window before the tested change; 0 if no change is being tested
  // least_bytes_: bytes to consume before the next change. consumed_bytes_: bytes consumed since the last change.
  std::uint64_t least_bytes_ = bytes_, consumed_bytes_ = 0;
  network_time spent_{}, consumed_at_{};
  double rate_ = 0;   // best recent rate, in bytes per ns, before the change that is being tested
  bool begun_ = false;
};

}}}   // namespace millrace::detail
