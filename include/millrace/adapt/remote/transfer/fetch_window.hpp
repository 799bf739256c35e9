// How many bytes of a file are fetched ahead of its reader.
//
//   mr::detail::fetch_window window(8 << 20);
//   if (must_wait) window.adapt(128 << 20);                // doubles, or takes the last doubling back
//   window.gave(bytes, now_ns);                            // which the reader took
//   mr::detail::fetch_window next = window.of_next_file(); // goes on where this one ends
//
// A reader waits because the network is slow, or because too few bytes are in flight: rate * latency are needed
// (Little's law). A larger window helps only against the second, and costs memory. So the window doubles as long as
// each doubling made the reader faster by an eighth. A doubling that did not is taken back, and is tried again after 64
// windows.
// Errors: none. Threads: one at a time.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The bytes ahead of one reader.
class fetch_window {
 public:
  explicit fetch_window(std::size_t bytes) noexcept : bytes_(bytes) {}

  std::size_t bytes() const noexcept { return bytes_; }
  /// Returns whether a reader took something of this file.
  bool has_given() const noexcept { return begun_; }

  /// Says that the reader has to wait.
  void adapt(std::size_t max_bytes) noexcept {
    if (given_bytes_ < least_bytes_) return;
    const double rate = static_cast<double>(std::exchange(given_bytes_, 0)) /
                        static_cast<double>(std::max<std::int64_t>(std::exchange(spent_ns_, 0), 1));
    const bool helped = rate > 1.125 * rate_before_;
    if (bytes_before_ > 0 && !helped) {
      bytes_ = std::exchange(bytes_before_, 0);
      least_bytes_ = 64 * std::uint64_t{bytes_};
      return;
    }
    rate_before_ = rate;
    bytes_before_ = bytes_ < max_bytes ? bytes_ : 0;
    if (bytes_before_ > 0) bytes_ = std::min(2 * bytes_, max_bytes);
    least_bytes_ = bytes_;
  }
  /// Says what the reader took. A file's first bytes do not count, for they waited for a connection.
  void gave(std::size_t bytes, std::int64_t now_ns) noexcept {
    if (std::exchange(begun_, true)) {
      given_bytes_ += bytes;
      spent_ns_ += now_ns - gave_at_ns_;
    }
    gave_at_ns_ = now_ns;
  }
  /// Returns the window with which the next file begins.
  fetch_window of_next_file() const noexcept {
    fetch_window next = *this;
    next.begun_ = false;
    return next;
  }

 private:
  std::size_t bytes_, bytes_before_ = 0;   // before the doubling that is on trial; 0: none is
  std::uint64_t least_bytes_ = bytes_, given_bytes_ = 0;   // what the reader takes until the window may change; took
  std::int64_t spent_ns_ = 0, gave_at_ns_ = 0;
  double rate_before_ = 0;   // bytes a ns, before the last doubling
  bool begun_ = false;
};

}}}  // namespace millrace::detail
