#include <millrace/base/clock.hpp>
#include <millrace/measure/meters/read_meter.hpp>
#include <millrace/measure/values/process_statistics.hpp>

#include <doctest/doctest.h>

namespace mr = millrace;

TEST_CASE("reads at the same time: sums, levels, and the mean number of concurrent ones") {
  mr::detail::read_meter meter;
  const std::uint64_t start = 1'000'000;
  {
    mr::detail::read_meter::running first(meter, start);          // 0 .. 300
    mr::detail::read_meter::running second(meter, start + 100);   // 100 .. 200
    second.record_bytes(50);
    second.end(start + 200);
    first.record_bytes(10);
    first.record_bytes(20);
    first.end(start + 300);
  }
  {
    mr::detail::read_meter::running third(meter, start + 1'000);   // 1000 .. 1100, after a pause
    third.end(start + 1'100);
  }
  const mr::detail::read_meter::statistics f = meter.snapshot();
  CHECK(f.bytes == 80);
  CHECK(f.busy_ns == 300 + 100 + 100);
  CHECK(f.levels.at(1).ns == 300);
  CHECK(f.levels.at(2).ns == 100);
  CHECK(f.levels.busy_ns() == 400);
  CHECK(f.levels.mean_outstanding() == doctest::Approx(1.25));
  // The second one overlapped for all of its time, the first one for a third.
  CHECK(f.levels.at(2).reads == 1);
  CHECK(f.levels.at(2).read_ns == 100);
  CHECK(f.levels.at(1).reads == 2);
  CHECK(f.levels.at(1).bytes == 30);
  CHECK(f.service_ns.count() == 3);
  CHECK(f.service_ns.sum() == 500);
  mr::detail::read_meter::statistics window = meter.snapshot();
  window -= f;
  CHECK(window.bytes == 0);
  CHECK(window.busy_ns == 0);
  // Concurrent reads have different tracks, the next one has the first again.
  const auto tracks = meter.spans();
  REQUIRE(tracks.size() == 2);
  CHECK(tracks[0].size() == 2);
  CHECK(tracks[1].size() == 1);
  CHECK(tracks[1][0].start_ns == start + 100);
}

TEST_CASE("a read that does not end is counted while it lasts, and named") {
  mr::detail::read_meter meter;
  CHECK(meter.waits(1) == "no read in progress");
  mr::detail::read_meter::running read(meter, "train-000012.tar");
  const std::uint64_t before = meter.snapshot().busy_ns;
  while (meter.snapshot().busy_ns == before) {
  }
  CHECK(meter.snapshot().levels.busy_ns() > 0);
  CHECK(meter.snapshot().service_ns.count() == 0);
  const auto now = static_cast<std::uint64_t>(mr::detail::read_clock_ns(CLOCK_MONOTONIC)) + 31'250'000'000;
  CHECK(meter.waits(now).starts_with("1 read in progress, the longest for 3"));
  CHECK(meter.waits(now).ends_with(" s: train-000012.tar"));
}

TEST_CASE("a ring of spans keeps the last ones, in order") {
  mr::detail::span_ring ring;
  CHECK(ring.snapshot().empty());
  for (std::uint64_t i = 0; i < 3; ++i) ring.record({.start_ns = i, .end_ns = i + 1, .number = 7});
  CHECK(ring.snapshot().size() == 3);
  for (std::uint64_t i = 3; i < 2'000; ++i) ring.record({.start_ns = i, .end_ns = i + 1});
  const auto all = ring.snapshot();
  REQUIRE(all.size() >= mr::detail::span_ring::most - 1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    REQUIRE(all[i].start_ns == 2'000 - all.size() + i);
    REQUIRE(all[i].end_ns == all[i].start_ns + 1);
  }
}

TEST_CASE("the system's statistics of this process only grow, and exist on Linux") {
  const auto before = mr::detail::process_statistics::now(), after = mr::detail::process_statistics::now();
  CHECK((after - before).throttled_ns <= after.throttled_ns);
#if defined(__linux__)
  CHECK(after.storage_bytes >= before.storage_bytes);
  CHECK(after.cpu_ns > before.cpu_ns);
  const auto delay = mr::detail::run_delay_of_this_thread_ns(), later = mr::detail::run_delay_of_this_thread_ns();
  CHECK(later >= delay);
#endif
}
