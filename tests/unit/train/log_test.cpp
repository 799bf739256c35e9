#include "../../eventually.hpp"
#include "fixtures.hpp"

#include <millrace/train/log.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

namespace mr = millrace;
using steps = std::vector<std::uint64_t>;

namespace {

/// Waits until the writer is inside the sink.
void wait_for_entry(const remembering_sink::shared& memory, int times) {
  REQUIRE(eventually([&] { return memory.entered >= times; }));
}

std::shared_ptr<remembering_sink::shared> new_memory() { return std::make_shared<remembering_sink::shared>(); }

}  // namespace

TEST_CASE("every row reaches every sink, and closing closes each once") {
  const auto first = new_memory(), second = new_memory();
  {
    mr::log out(remembering_sink{first}, remembering_sink{second});
    for (std::uint64_t s = 0; s < 100; ++s) CHECK(out.push({.step = s, .values = {{"loss", 0.5}}}));
    CHECK(out.close());
    CHECK(out.close());
    CHECK_FALSE(out.push({.step = 100}));
    CHECK(out.counts().written == 100);
    CHECK(out.counts().refused == 1);
  }
  CHECK(first->steps().size() == 100);
  CHECK(first->steps() == second->steps());
  CHECK(first->closed == 1);
}

TEST_CASE("invalid text is cleaned before all sinks: text is UTF-8") {
  const auto memory = new_memory();
  mr::log out(remembering_sink{memory});
  mr::row r{.step = 1, .values = {{"loss \xff\xfe", 0.5}, {"fran\xc3\xa7" "ais", 1}}, .message = "cut: \xe2\x82"};
  r.images.push_back({.name = "\xc0\x80.png"});
  CHECK(out.push(r));
  CHECK(out.message("\xed\xa0\x80 and on"));   // half of a pair of UTF-16
  CHECK(out.close());
  REQUIRE(memory->rows.size() == 2);
  const std::string bad = "\xef\xbf\xbd";
  CHECK(memory->rows[0].values[0].name == "loss " + bad + bad);
  CHECK(memory->rows[0].values[1].name == "fran\xc3\xa7" "ais");
  CHECK(memory->rows[0].message == "cut: " + bad + bad);
  CHECK(memory->rows[0].images[0].name == bad + bad + ".png");
  CHECK(memory->rows[1].message == bad + bad + bad + " and on");
}

TEST_CASE("rows that wait together are written by step, messages keep their place") {
  const auto memory = new_memory();
  fake_clock clock;
  mr::log out({.now = clock}, remembering_sink{memory});
  out.push({.step = 10});
  out.push({.step = 30});
  out.message("between 30 and 40");
  out.push({.step = 20});
  out.push({.step = 40});
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(memory->steps().empty());   // the clock does not advance: all are buffered
  CHECK(out.flush());
  CHECK(memory->steps() == steps{10, 20, 30, 30, 40});
  CHECK(memory->rows[3].message == "between 30 and 40");
  CHECK(out.counts().late == 0);
}

TEST_CASE("a row is buffered no longer than `hold`, and is then written with those of lower steps") {
  const auto memory = new_memory();
  fake_clock clock;
  mr::log out({.hold = std::chrono::microseconds(1), .now = clock}, remembering_sink{memory});
  out.push({.step = 20});
  clock.advance(999);
  out.push({.step = 10});
  out.push({.step = 30});
  clock.advance(1);
  out.push({.step = 40});   // wakes the writer
  CHECK(eventually([&] { return memory->steps().size() >= 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));   // a third one would arrive now
  CHECK(memory->steps() == steps{10, 20});
}

TEST_CASE("a row that arrives too late for its place is still written, and counted") {
  const auto memory = new_memory();
  mr::log out(remembering_sink{memory});
  out.push({.step = 50});
  out.flush();
  out.push({.step = 40});
  out.flush();
  CHECK(memory->steps() == steps{50, 40});
  CHECK(out.counts().late == 1);
}

TEST_CASE("with a sink that hangs, push drops the lowest steps, offer refuses, and neither waits") {
  const auto memory = new_memory();
  mr::log out({.queue_rows = 4, .hold = {}}, remembering_sink{memory});
  mr::row extra{.step = 100, .values = {{"loss", 1}}};
  {
    const std::lock_guard hang(memory->gate);
    out.push({.step = 0});
    wait_for_entry(*memory, 1);
    for (std::uint64_t s = 1; s <= 10; ++s) CHECK(out.push({.step = s}));
    CHECK_FALSE(out.offer(extra));
    CHECK(extra.values.size() == 1);   // untouched
    CHECK(out.counts().dropped == 6);
    CHECK(out.counts().refused == 1);
  }
  CHECK(out.flush());
  CHECK(out.offer(extra));
  out.close();
  CHECK(memory->steps() == steps{0, 7, 8, 9, 10, 100});
  const auto c = out.counts();
  CHECK(c.accepted == c.written + c.dropped);
}

TEST_CASE("the queue is bounded in bytes too") {
  const auto memory = new_memory();
  mr::log out({.queue_bytes = 10'000, .hold = {}}, remembering_sink{memory});
  CHECK_FALSE(out.push({.step = 1, .message = std::string(20'000, 'x')}));
  const std::lock_guard hang(memory->gate);
  out.push({.step = 0});
  wait_for_entry(*memory, 1);
  for (std::uint64_t s = 1; s <= 5; ++s) CHECK(out.push({.step = s, .message = std::string(4'000, 'x')}));
  CHECK(out.counts().dropped == 3);
}

TEST_CASE("a sink that throws loses its own rows only, and recovers") {
  const auto good = new_memory(), bad = new_memory();
  bad->broken = true;
  mr::log out(remembering_sink{bad}, remembering_sink{good});
  for (std::uint64_t s = 0; s < 3; ++s) out.push({.step = s});
  CHECK(out.flush());
  bad->broken = false;
  out.push({.step = 3});
  CHECK(out.close());
  CHECK(out.counts().sink_errors == 3);
  CHECK(out.counts().failed == 3);    // one sink has them, the other does not
  CHECK(out.counts().written == 1);
  CHECK(good->steps() == steps{0, 1, 2, 3});
  CHECK(bad->steps() == steps{3});
}

TEST_CASE("closing abandons a sink that hangs, within its bound") {
  const auto memory = new_memory();
  {
    const std::lock_guard hang(memory->gate);
    mr::log out({.hold = {}, .drain = std::chrono::milliseconds(20)}, remembering_sink{memory});
    out.push({.step = 0});
    wait_for_entry(*memory, 1);
    out.push({.step = 1});
    CHECK_FALSE(out.flush());
    CHECK_FALSE(out.close());   // without its bound it would wait forever: this thread has locked the gate
    CHECK(out.counts().dropped == 1);
  }
  // The abandoned thread still ends in good order.
  CHECK(eventually([&] { return memory->closed == 1; }));
  CHECK(memory->steps() == steps{0});
}

TEST_CASE("many threads may push, offer and flush at once; no row is lost or doubled") {
  const auto memory = new_memory();
  mr::log out({.queue_rows = 16}, remembering_sink{memory});
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> accepted{0};
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 500; ++i) {
        const std::uint64_t step = i * 4 + t;
        accepted += (i % 2 ? out.offer(mr::row{.step = step}) : out.push({.step = step}));
        if (i % 100 == 0) out.flush();
      }
    });
  for (auto& t : threads) t.join();
  CHECK(out.close());
  const auto c = out.counts();
  CHECK(c.accepted == accepted);
  CHECK(c.accepted + c.refused == 2'000);
  CHECK(c.written + c.dropped == c.accepted);
  auto steps = memory->steps();
  CHECK(steps.size() == c.written);
  std::sort(steps.begin(), steps.end());
  CHECK(std::adjacent_find(steps.begin(), steps.end()) == steps.end());
}

TEST_CASE("a log sets a row's time from its clock unless the row has its own") {
  const auto memory = new_memory();
  fake_clock clock;
  clock.advance(5);
  mr::log out({.now = clock}, remembering_sink{memory});
  out.push({.step = 1});
  out.push({.step = 2, .unix_ns = 77});
  out.close();
  CHECK(memory->rows[0].unix_ns == fake_clock::unix_start_ns + 5);
  CHECK(memory->rows[1].unix_ns == 77);
}

TEST_CASE("a queue without room for rows is refused") { CHECK_THROWS_AS(mr::log({.queue_rows = 0}), mr::setup_error); }
