// Readers that sleep: each is woken when there is something to pass on or to read.
#include "../../run/stall_watchdog.hpp"
#include "lane_flows.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <utility>

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
