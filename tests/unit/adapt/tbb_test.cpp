#include "../../eventually.hpp"
#include "../run/executor_runs.hpp"

#include <millrace/adapt/tbb.hpp>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>

#include <doctest/doctest.h>

#include <atomic>

namespace mr = millrace;

namespace {

/// Lets oneTBB start as many threads as the arenas have slots, even on few cores.
struct enough_threads {
  tbb::global_control limit{tbb::global_control::max_allowed_parallelism, 8};
};

}  // namespace

TEST_CASE("the batches of a run in a user's arena are those of own workers, however many slots the arena has") {
  const stall_watchdog watchdog;
  const enough_threads limit;
  const rows_of_run plain = run_of(plain_flow(), quiet(2)), staged = run_of(staged_flow(), quiet(2));
  for (const int slots : {1, 2, 4})
    for (const unsigned reserved : {0U, 1U}) {
      CAPTURE(slots);
      CAPTURE(reserved);
      tbb::task_arena arena(slots, reserved);
      const auto executor = mr::tbb_executor(arena);
      CHECK(executor->concurrency() == static_cast<unsigned>(slots));
      CHECK(run_of(plain_flow(), on(executor)) == plain);
      CHECK(run_of(staged_flow(), on(executor)) == staged);
    }
}

TEST_CASE("workers run in the arena, where callables may use oneTBB themselves") {
  const stall_watchdog watchdog;
  const enough_threads limit;
  tbb::task_arena arena(3, 0);
  const std::thread::id trainer = std::this_thread::get_id();
  std::atomic<int> elsewhere{0};
  const drawing f = [&](int n, mr::rng& random) {
    elsewhere += std::this_thread::get_id() != trainer && tbb::this_task_arena::max_concurrency() != 3;
    std::atomic<int> sum{0};
    tbb::parallel_for(0, 20, [&](int i) { sum += i; });
    return random_row{sum == 190 ? n : -1, random.uniform()};
  };
  CHECK(run_of(staged_flow(f), on(mr::tbb_executor(arena))) == run_of(staged_flow(), quiet(1)));
  CHECK(elsewhere == 0);
}

TEST_CASE("two sessions share an arena, and are destroyed in the middle; the arena may end at once") {
  const stall_watchdog watchdog;
  const enough_threads limit;
  const rows_of_run plain = run_of(plain_flow(), quiet(1));
  for (int round = 0; round < 20; ++round) {
    tbb::task_arena arena(1 + round % 3, static_cast<unsigned>(round % 2));
    mr::session one{plain_flow(), on(mr::tbb_executor(arena))};
    {
      mr::session two{staged_flow(draw, 100'000), on(mr::tbb_executor(arena), 2)};
      for (int batches = round % 5; batches > 0; --batches) two.next().release();
    }
    if (round % 2 == 0) CHECK(rest_of(one) == plain);
  }
}
