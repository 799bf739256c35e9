// How many bytes of a file are fetched ahead of its reader.
//
//   mr::detail::fetch_window window(8 << 20, now_ns);
//   if (must_wait) window.grow(now_ns, 128 << 20);         // doubles, if that may help
//   window.gave(bytes);                                    // which the reader took
//
// A reader waits because the network is slow, or because too few bytes are in flight: rate * latency are needed
// (Little's law). A larger window helps only against the second. So the window doubles as long as each doubling made
// the reader faster by an eighth. Then it stays, and one more doubling is tried after 64 windows.
// Errors: none. Threads: one at a time.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The bytes ahead of one reader.
class fetch_window {
 public:
  fetch_window(std::size_t bytes, std::int64_t now_ns) noexcept : bytes_(bytes), changed_ns_(now_ns) {}

  std::size_t bytes() const noexcept { return bytes_; }

  /// Says that the reader has to wait. Returns whether the window has grown.
  bool grow(std::int64_t now_ns, std::size_t max_bytes) noexcept {
    if (given_bytes_ < least_bytes_ || bytes_ >= max_bytes) return false;
    const double rate = static_cast<double>(given_bytes_) / static_cast<double>(std::max<std::int64_t>(
                                                                now_ns - changed_ns_, 1));
    const bool helped = rate > 1.125 * rate_before_;
    rate_before_ = rate;
    given_bytes_ = 0;
    changed_ns_ = now_ns;
    if (!helped && !tries_again_) {
      least_bytes_ = 64 * std::uint64_t{bytes_};
      tries_again_ = true;
      return false;
    }
    tries_again_ = false;
    bytes_ = std::min(2 * bytes_, max_bytes);
    least_bytes_ = bytes_;
    return true;
  }
  void gave(std::size_t bytes) noexcept { given_bytes_ += bytes; }

 private:
  std::size_t bytes_;
  std::uint64_t least_bytes_ = bytes_, given_bytes_ = 0;   // what the reader takes before the window may grow; took
  std::int64_t changed_ns_;
  double rate_before_ = 0;   // bytes a ns, before the last change
  bool tries_again_ = false;
};

}}}  // namespace millrace::detail
