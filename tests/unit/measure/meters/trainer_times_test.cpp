#include <millrace/measure/meters/trainer_times.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace mr = millrace;

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
