// The number of bytes that are fetched ahead: it grows only while that speeds up the reader.
#include <millrace/adapt/remote/transfer/fetch_window.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

namespace mr = millrace;
using mr::detail::fetch_window;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// A reader that reads 1 MiB at a time, and waits before each read.
struct waiting_reader {
  fetch_window window{8 * mib};
  mr::detail::network_time now{1'000'000'000, 900'000'000};   // before the first byte arrives

  /// `rate` is in bytes per ns; `idle` is the share of the time in which the network's thread has nothing to do.
  void read_a_mib(double rate, double idle) {
    window.adapt(128 * mib);
    window.record_consumed(mib, now);
    pass(static_cast<double>(mib) / rate, idle);
  }
  void pass(double ns, double idle) {
    now.now_ns += static_cast<std::int64_t>(ns);
    now.idle_ns += static_cast<std::int64_t>(idle * ns);
  }
};

/// `rate` is a function of the window.
std::size_t window_after(std::size_t bytes, const std::function<double(std::size_t)>& rate,
                         std::size_t file_bytes = ~std::size_t{0}) {
  waiting_reader reader;
  for (std::size_t at = 0; at < bytes; at += mib) {
    reader.read_a_mib(rate(reader.window.bytes()), 0.5);
    if ((at + mib) % file_bytes != 0) continue;
    reader.pass(1e9, 1);   // a connection to the next file
    reader.window = reader.window.of_next_file();
  }
  return reader.window.bytes();
}

/// 85 MB/s for each 8 MiB in flight.
double far(std::size_t window) { return 0.085 * static_cast<double>(window) / (8 * mib); }

}  // namespace

TEST_CASE("a window grows as long as the reader gets faster") {
  CHECK(window_after(8 * mib, far) == 8 * mib);
  CHECK(window_after(10 * mib, far) == 16 * mib);
  CHECK(window_after(256 * mib, far) == 128 * mib);
}

TEST_CASE("a doubling that does not help is undone") {
  // A link of 340 MB/s for any window above 32 MiB. One more doubling is necessary to find out.
  const auto narrow = [](std::size_t window) { return std::min(far(window), 0.34); };
  CHECK(window_after(100 * mib, narrow) == 64 * mib);
  CHECK(window_after(256 * mib, narrow) == 32 * mib);
  const auto near = [](std::size_t) { return 0.3; };
  CHECK(window_after(12 * mib, near) == 16 * mib);
  CHECK(window_after(64 * mib, near) == 8 * mib);
}

TEST_CASE("a doubling that was undone is tried again later") {
  const auto near = [](std::size_t) { return 0.3; };
  CHECK(window_after(8 * mib * 66, near) == 8 * mib);
  CHECK(window_after(8 * mib * 68, near) == 16 * mib);
  CHECK(window_after(8 * mib * 71, near) == 8 * mib);
}

TEST_CASE("a window does not grow while the network's thread is busy") {
  waiting_reader reader;
  for (int i = 0; i < 1'000; ++i) {
    reader.read_a_mib(far(reader.window.bytes()), 0.12);
    CHECK(reader.window.bytes() == 8 * mib);
  }
  for (int i = 0; i < 1'000; ++i) reader.read_a_mib(far(reader.window.bytes()), 0.13);
  CHECK(reader.window.bytes() == 128 * mib);
}

TEST_CASE("a busy network's thread gets the smallest window with which the reader is as fast") {
  waiting_reader reader;
  for (int i = 0; i < 1'000; ++i) reader.read_a_mib(far(reader.window.bytes()), 0.5);
  CHECK(reader.window.bytes() == 128 * mib);
  waiting_reader slowing_reader = reader;
  for (int i = 0; i < 1'000; ++i) reader.read_a_mib(1.3, 0);
  CHECK(reader.window.bytes() == 8 * mib);
  // At 64 MiB the rate halves: this is detected after 64 MiB, undone, and not tried again for long.
  int smaller = 0;
  for (int i = 0; i < 2'000; ++i) {
    slowing_reader.read_a_mib(far(slowing_reader.window.bytes()), 0);
    smaller += slowing_reader.window.bytes() < 128 * mib;
  }
  CHECK(slowing_reader.window.bytes() == 128 * mib);
  CHECK(smaller > 0);
  CHECK(smaller < 100);
}

TEST_CASE("a pause of the machine does not mistakenly speed up the next window") {
  waiting_reader reader;
  for (int i = 0; i < 100; ++i) reader.read_a_mib(0.4, 0);
  reader.pass(100e6, 1);
  for (int i = 0; i < 9 && reader.window.bytes() == 8 * mib; ++i) reader.read_a_mib(0.4, 0.2);
  CHECK(reader.window.bytes() == 16 * mib);   // the doubling is on trial
  for (int i = 0; i < 17; ++i) reader.read_a_mib(0.4, 0.2);
  CHECK(reader.window.bytes() == 8 * mib);
}

TEST_CASE("the window of the next file starts with the last size of the previous one") {
  CHECK(window_after(400 * mib, far, 5 * mib) == 128 * mib);
  const auto near = [](std::size_t) { return 0.3; };
  CHECK(window_after(400 * mib, near, 5 * mib) == 8 * mib);
}

TEST_CASE("a window does not go beyond its limit, and one beyond it stays") {
  fetch_window window(48 * mib);
  mr::detail::network_time now{};
  const auto later = [&] { return now = {now.now_ns + 1'000'000, now.idle_ns + 500'000}; };
  for (int i = 0; i < 400; ++i) {
    window.adapt(64 * mib);
    CHECK(window.bytes() <= 64 * mib);
    window.record_consumed(mib, later());
  }
  fetch_window wide(128 * mib);
  for (int i = 0; i < 400; ++i) {
    wide.adapt(64 * mib);
    CHECK(wide.bytes() == 128 * mib);
    wide.record_consumed(mib, later());
  }
}
