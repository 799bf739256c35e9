#include <millrace/base/clock.hpp>
#include <millrace/measure/meters/copy_times.hpp>
#include <millrace/measure/meters/read_meter.hpp>
#include <millrace/measure/meters/trainer_times.hpp>
#include <millrace/measure/meters/worker_times.hpp>
#include <millrace/measure/values/process_statistics.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <thread>

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

TEST_CASE("a meter without reads is small and has no spans: each source of a mix has one") {
  static_assert(sizeof(mr::detail::read_meter) < 8'192);
  mr::detail::read_meter meter;
  CHECK(meter.spans().empty());
  CHECK(meter.waits(0) == "no read in progress");
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

namespace {

using times = mr::detail::trainer_times;
using statistics = mr::stage_statistics;

/// A run of 1000 ns whose trainer paused from 600 to 900. Its one stage has two threads.
statistics after_a_pause(const statistics& stage) {
  times t;
  t.start(0);
  t.call(0);
  t.record_return(100, times::kind::batch, {});
  t.call(500);
  t.record_return(600, times::kind::pause, {});
  t.call(900);
  t.record_return(950, times::kind::batch, {});
  mr::flow_statistics f;
  f.stages.push_back(stage);
  t.add_to(f, 1000);
  CHECK(f.wall_ns == 700);
  REQUIRE(f.stages.size() == 2);
  return f.stages[0];
}

void check(const statistics& is, const statistics& expected) {
  CHECK(is.busy_ns == expected.busy_ns);
  CHECK(is.starved_ns == expected.starved_ns);
  CHECK(is.blocked_ns == expected.blocked_ns);
}

}  // namespace

TEST_CASE("a pause of the trainer does not count as time of a stage") {
  SUBCASE("a stage that was blocked in it: 600 ns of two threads are omitted")
    check(after_a_pause({.concurrency = 2, .busy_ns = 900, .starved_ns = 300, .blocked_ns = 800}),
          {.busy_ns = 900, .starved_ns = 300, .blocked_ns = 200});
  SUBCASE("a stage without further samples: it was starved")
    check(after_a_pause({.concurrency = 2, .busy_ns = 900, .starved_ns = 1000, .blocked_ns = 100}),
          {.busy_ns = 900, .starved_ns = 500});
  SUBCASE("a stage that was closed before: it counted nothing in the pause")
    check(after_a_pause({.concurrency = 2, .busy_ns = 900, .starved_ns = 300, .blocked_ns = 200}),
          {.busy_ns = 900, .starved_ns = 300, .blocked_ns = 200});
  SUBCASE("a stage that worked through it: its work is not omitted")
    check(after_a_pause({.concurrency = 2, .busy_ns = 1900, .starved_ns = 100}), {.busy_ns = 1900});
  SUBCASE("a stage whose threads were closed since: at most the pause is omitted")
    check(after_a_pause({.concurrency = 1, .busy_ns = 900, .starved_ns = 500, .blocked_ns = 200}),
          {.busy_ns = 900, .starved_ns = 400});
}

// Times of workers and copies while another thread writes them: a reader may miss a value, but counts nothing twice.

namespace {

constexpr int reads = 300'000;

/// Calls `write` with 1, 2, ... in a thread during all calls of `read` here. Returns the last number.
template <class Write, class Read>
std::uint64_t concurrently(const Write& write, const Read& read) {
  std::atomic<std::uint64_t> last{0};
  std::atomic<bool> enough{false};
  std::thread writer([&] {
    while (!enough) {
      write(last + 1);
      ++last;
    }
  });
  while (last == 0) std::this_thread::yield();
  for (int i = 0; i < reads; ++i) read();
  enough = true;
  writer.join();
  return last;
}

}  // namespace

TEST_CASE("a wait of a worker is not counted twice while its reason changes") {
  using times = mr::detail::worker_times;
  constexpr std::uint64_t step_ns = 1'000'000'000;
  times t(0);
  t.wait_for(0, times::waits_for::input);
  std::atomic<std::uint64_t> now_ns{0};
  std::uint64_t twice = 0;
  const std::uint64_t changes = concurrently(
      [&](std::uint64_t n) {
        now_ns = n * step_ns;
        t.wait_for(n * step_ns, n % 2 ? times::waits_for::space : times::waits_for::input);
      },
      [&] {
        mr::stage_statistics s;
        t.add_to(s, now_ns);
        // The clock is read again, because the worker may have changed its reason meanwhile.
        if (s.starved_ns + s.blocked_ns > now_ns) ++twice;
      });
  CHECK(twice == 0);
  mr::stage_statistics s;
  t.add_to(s, now_ns);
  CHECK(s.starved_ns + s.blocked_ns == changes * step_ns);
}

TEST_CASE("the arrival of a copy is never that of a later batch") {
  mr::detail::copy_times t;
  t.start();
  const std::uint64_t start_ns = mr::detail::steady_now_ns();
  std::atomic<std::uint64_t> latest{0};
  std::uint64_t wrong = 0, arrivals = 0;
  const std::uint64_t copies = concurrently(
      [&](std::uint64_t n) {
        t.copied({start_ns + n, start_ns + n, n}, 1);
        latest = n;
      },
      [&] {
        // The oldest batches of the window, whose entries are overwritten next.
        const std::uint64_t newest = latest;
        for (std::uint64_t batch = newest > 31 ? newest - 31 : 1; batch + 28 <= newest; ++batch) {
          const std::uint64_t at_ns = t.arrived_ns(batch);
          arrivals += at_ns != 0;
          wrong += at_ns != 0 && at_ns != start_ns + batch;
        }
      });
  CHECK(wrong == 0);
  CHECK(t.arrived_ns(copies) == start_ns + copies);
  CHECK(arrivals > 0);
}
