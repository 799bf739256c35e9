// The threads of a read stage: wake-ups and shutdown.
#include "../../../eventually.hpp"
#include "lane_flows.hpp"
#include "scripted_source.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <utility>

namespace {

/// A source whose readers wait until the number of simultaneous reads reaches that of the test.
struct meeting_source {
  using item = sized_number;
  struct meeting {
    std::atomic<int> inside{0}, needed{2};
    std::atomic<bool> over{false};
  };
  std::shared_ptr<meeting> place = std::make_shared<meeting>();
  std::size_t all = 2;

  struct reader {
    std::shared_ptr<meeting> place;
    bool read = false;
    std::optional<sized_number> next() {
      if (std::exchange(read, true)) return std::nullopt;
      ++place->inside;
      while (place->inside < place->needed && !place->over) std::this_thread::yield();
      return sized_number{};
    }
  };
  std::size_t shards() const { return all; }
  reader open(std::size_t, std::uint64_t) const { return {place}; }
};

/// The time of a few steps of other threads, if they get a core; nothing depends on it.
void let_others_run() {
  for (int i = 0; i < 2'000; ++i) std::this_thread::yield();
}

}  // namespace

TEST_CASE("a thread that finds more to read wakes another one") {
  stage_with_sink<meeting_source> t({.all = 3}, {.threads = 3, .open_shards = 3});
  t.source.place->needed = 3;
  t.stage.withheld = true;
  t.stage.start();
  REQUIRE(eventually([&] { return t.stage.searches >= 3; }));
  let_others_run();   // to sleep
  t.stage.release();
  t.stage.set_active({.workers = 1, .reads = 3});   // wakes one
  CHECK(eventually([&] { return t.sink.log() == "0 0 0 epoch end"; }));
  t.source.place->over = true;
}

TEST_CASE("closed threads do not read, and are woken when they are opened") {
  stage_with_sink<meeting_source> t({.all = 2}, {.threads = 2, .open_shards = 2});
  t.stage.set_active({.workers = 1, .reads = 1});
  CHECK(t.stage.threads() == 1);
  t.stage.start();
  REQUIRE(eventually([&] { return t.source.place->inside == 1; }));
  let_others_run();
  CHECK(t.source.place->inside == 1);
  t.stage.set_active({.workers = 1, .reads = 9});
  CHECK(t.stage.threads() == 2);
  CHECK(eventually([&] { return t.sink.log() == "0 0 epoch end"; }));
  t.source.place->over = true;
}

TEST_CASE("a signal that wakes a closed thread reaches one that is open") {
  for (std::uint64_t round = 0; round < 12; ++round) {
    stage_with_sink<scripted_source> t(scripted_source().add(0, 2), {.threads = 4});
    t.stage.withheld = true;
    t.stage.start();
    REQUIRE(eventually([&] { return t.stage.searches >= 4; }));
    for (std::uint64_t i = 0; i < round % 4; ++i) {   // the thread that slept longest sleeps again
      let_others_run();
      t.stage.set_active({.workers = 1, .reads = 4});
      REQUIRE(eventually([&] { return t.stage.searches >= 5 + i; }));
    }
    let_others_run();
    t.stage.release();
    t.stage.set_active({.workers = 1, .reads = 1});   // wakes one, in most rounds a closed one
    REQUIRE(eventually([&] { return t.sink.log() == "0 1 epoch end"; }));
  }
}

TEST_CASE("a thread that waits for space is woken when half of the backlog was removed, once") {
  stage_with_sink<scripted_source> t(scripted_source().add(0, 40), {.threads = 1});
  t.sink.waiting = 10;
  t.sink.room = 4;
  t.stage.start();
  REQUIRE(eventually([&] { return t.stage.samples_read() == 40 && t.stage.read_ahead_bytes() == 36; }));
  t.stage.wait_for_lock();   // the reader has requested a wake-up
  t.sink.waiting = 6;
  t.stage.space_freed();   // more than half is left
  let_others_run();
  t.sink.room = 3;
  t.sink.waiting = 5;
  t.stage.space_freed();
  REQUIRE(eventually([&] { return t.stage.read_ahead_bytes() == 33; }));
  t.stage.wait_for_lock();
  t.sink.room = 40;
  t.sink.waiting = 2;
  t.stage.space_freed();
  CHECK(eventually([&] { return t.sink.log().ends_with("39 epoch end"); }));
}

TEST_CASE("a thread that waits for space sleeps, even if no sample or only one is in the next segment") {
  for (const std::size_t waiting : {0U, 1U}) {
    stage_with_sink<scripted_source> t(scripted_source().add(0, 40), {.threads = 1});
    t.sink.waiting = waiting;
    t.sink.room = 4;
    t.stage.start();
    REQUIRE(eventually([&] { return t.stage.samples_read() == 40 && t.stage.read_ahead_bytes() == 36; }));
    CHECK(eventually([&] {
      const auto before = t.stage.searches.load();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return t.stage.searches == before;
    }));
  }
}

TEST_CASE("a reader that runs out of memory while it passes on ends the run, and can be stopped") {
  stage_with_sink<scripted_source> t(scripted_source().add(0, 3), {.threads = 2});
  t.sink.fails = true;
  t.stage.start();
  CHECK(eventually([&] { return t.sink.log() == "failed"; }));
  CHECK(error_text(t.sink.error()).find("memory is exhausted") != std::string::npos);
  CHECK(error_text(t.sink.error()).find("stage source") != std::string::npos);
}

TEST_CASE("threads that sleep, and those that are closed, end when the stage is stopped") {
  stage_with_sink<scripted_source> t(scripted_source().add(0, 3), {.threads = 4});
  t.stage.set_active({.workers = 1, .reads = 2});
  t.stage.start();
  REQUIRE(eventually([&] { return t.sink.log() == "0 1 2 epoch end"; }));
  let_others_run();
  t.stage.stop();
  t.stage.join();
  CHECK(t.stage.samples_read() == 3);
}

namespace mr = millrace;

namespace {

/// A sink that is full at every second check once it has some samples: a worker frees the space right after the check.
struct freed_after_check final : mr::detail::sample_sink<int> {
  static constexpr std::uint64_t before = 5;
  std::atomic<std::uint64_t> put_{0}, checks{0}, consumed{0};
  mr::detail::space_listener* listener = nullptr;

  bool can_accept() override { return put_ < before || ++checks % 2 == 0; }
  void put(mr::detail::sample<int>&&) override { ++put_; }
  void end_epoch() override {}
  void finish(std::exception_ptr) override {}
  void publish() override {}
  std::uint64_t backlog() const noexcept override { return put_ - consumed; }
  std::size_t held_bytes() const noexcept override { return 0; }
  void set_listener(mr::detail::space_listener* producer) override { listener = producer; }
  void take_all() {
    consumed = put_.load();
    listener->space_freed();
  }
};

}  // namespace

TEST_CASE("a reader that found no space is woken, although there is space when it goes to sleep") {
  const stall_watchdog watchdog;
  const numbers_in_shards source{{40}};
  mr::detail::interleaved_read_stage_options options{.threads = 1};
  options.lanes.push_back({.order = {.seed = 1, .shards = 1}});
  freed_after_check sink;
  mr::detail::interleaved_read_stage<numbers_in_shards> stage(source, options, sink);
  stage.start();
  for (std::uint64_t target = freed_after_check::before; target < 60;) {
    while (sink.put_ < target) std::this_thread::yield();   // without the wake-up the reader sleeps forever
    for (std::uint64_t last = 0; std::exchange(last, sink.checks.load()) != sink.checks;)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));   // it has gone to sleep
    target = sink.put_ + 1;
    sink.take_all();
  }
  stage.stop();
  stage.join();
  CHECK(sink.put_ >= 59);
}
