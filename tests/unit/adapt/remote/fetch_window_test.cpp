// How many bytes are fetched ahead: more where that makes the reader faster, and no more where it does not.
#include <millrace/adapt/remote/transfer/fetch_window.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

namespace mr = millrace;
using mr::detail::fetch_window;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// Reads in pieces of a MiB, and waits before each. `rate` is bytes a ns, by the window.
std::size_t window_after(std::size_t bytes, const std::function<double(std::size_t)>& rate) {
  std::int64_t now_ns = 1;
  fetch_window window(8 * mib, now_ns);
  for (std::size_t at = 0; at < bytes; at += mib) {
    window.grow(now_ns, 128 * mib);
    window.gave(mib);
    now_ns += static_cast<std::int64_t>(static_cast<double>(mib) / rate(window.bytes()));
  }
  return window.bytes();
}

}  // namespace

TEST_CASE("a window grows as long as the reader gets faster") {
  // 85 MB/s for each 8 MiB in flight.
  const auto far = [](std::size_t window) { return 0.085 * static_cast<double>(window) / (8 * mib); };
  CHECK(window_after(8 * mib, far) == 8 * mib);
  CHECK(window_after(10 * mib, far) == 16 * mib);
  CHECK(window_after(256 * mib, far) == 128 * mib);
  // A link that gives 340 MB/s together, whatever is in flight beyond 32 MiB. It takes one doubling more to know.
  const auto narrow = [&](std::size_t window) { return std::min(far(window), 0.34); };
  CHECK(window_after(256 * mib, narrow) == 64 * mib);
}

TEST_CASE("a window stays where more does not help, and is tried again later") {
  const auto near = [](std::size_t) { return 3.0; };
  CHECK(window_after(64 * mib, near) == 16 * mib);
  CHECK(window_after(16 * mib * 60, near) == 16 * mib);
  CHECK(window_after(16 * mib * 70, near) == 32 * mib);
}
