// Times of workers and copies while another thread writes them: a reader may miss a value, but counts nothing twice.
#include <millrace/measure/meters/copy_times.hpp>
#include <millrace/measure/meters/worker_times.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace mr = millrace;

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
