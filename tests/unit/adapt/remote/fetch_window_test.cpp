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
std::size_t window_after(std::size_t bytes, const std::function<double(std::size_t)>& rate,
                         std::size_t file_bytes = ~std::size_t{0}) {
  std::int64_t now_ns = 1'000'000'000;   // before the first byte comes
  fetch_window window(8 * mib);
  for (std::size_t at = 0; at < bytes; at += mib) {
    window.adapt(128 * mib);
    window.gave(mib, now_ns);
    now_ns += static_cast<std::int64_t>(static_cast<double>(mib) / rate(window.bytes()));
    if ((at + mib) % file_bytes != 0) continue;
    now_ns += 1'000'000'000;   // a connection to the next file
    window = window.of_next_file();
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
}

TEST_CASE("a doubling that does not help is taken back") {
  // A link that gives 340 MB/s together, whatever is in flight beyond 32 MiB. It takes one doubling more to know.
  const auto narrow = [](std::size_t window) {
    return std::min(0.085 * static_cast<double>(window) / (8 * mib), 0.34);
  };
  CHECK(window_after(100 * mib, narrow) == 64 * mib);
  CHECK(window_after(256 * mib, narrow) == 32 * mib);
  const auto near = [](std::size_t) { return 3.0; };
  CHECK(window_after(12 * mib, near) == 16 * mib);
  CHECK(window_after(64 * mib, near) == 8 * mib);
}

TEST_CASE("a doubling that was taken back is tried again later") {
  const auto near = [](std::size_t) { return 3.0; };
  CHECK(window_after(8 * mib * 66, near) == 8 * mib);
  CHECK(window_after(8 * mib * 68, near) == 16 * mib);
  CHECK(window_after(8 * mib * 71, near) == 8 * mib);
}

TEST_CASE("the window of the next file goes on where the last one ended") {
  const auto far = [](std::size_t window) { return 0.085 * static_cast<double>(window) / (8 * mib); };
  CHECK(window_after(400 * mib, far, 5 * mib) == 128 * mib);
  const auto near = [](std::size_t) { return 3.0; };
  CHECK(window_after(400 * mib, near, 5 * mib) == 8 * mib);
}

TEST_CASE("a window does not go beyond its limit, and one beyond it stays") {
  fetch_window window(48 * mib);
  std::int64_t now_ns = 0;
  for (int i = 0; i < 400; ++i) {
    window.adapt(64 * mib);
    CHECK(window.bytes() <= 64 * mib);
    window.gave(mib, now_ns += 1'000);
  }
  fetch_window wide(128 * mib);
  for (int i = 0; i < 400; ++i) {
    wide.adapt(64 * mib);
    CHECK(wide.bytes() == 128 * mib);
    wide.gave(mib, now_ns += 1'000);
  }
}
