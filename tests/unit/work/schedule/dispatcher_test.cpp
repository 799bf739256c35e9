#include "../../../eventually.hpp"

#include <millrace/base/clock.hpp>
#include <millrace/measure/values/process_statistics.hpp>
#include <millrace/work/schedule/dispatcher.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace mr = millrace;

namespace {

using mr::detail::dispatcher;

/// Runs each task on its own thread, like the shared workers of a session.
class counting_executor final : public mr::detail::worker_executor {
 public:
  explicit counting_executor(std::size_t cores = 0) : cores_(cores) {}
  ~counting_executor() override {
    for (std::vector<std::thread> ended = take_threads(); !ended.empty(); ended = take_threads())
      for (std::thread& t : ended) t.join();
  }
  bool shared() const noexcept override { return true; }
  std::size_t cores() const noexcept override {
    ++cores_calls;
    return cores_;
  }
  void submit(std::shared_ptr<mr::detail::worker_task> task, std::size_t worker) override {
    const std::lock_guard lock(mutex_);
    ++submitted_;
    threads_.emplace_back([task = std::move(task), worker] { task->run_as_worker(worker); });
  }
  mutable std::atomic<int> cores_calls{0};

  std::size_t submitted() {
    const std::lock_guard lock(mutex_);
    return submitted_;
  }

 private:
  std::vector<std::thread> take_threads() {
    const std::lock_guard lock(mutex_);   // a worker may be submitting another one
    return std::exchange(threads_, {});
  }

  const std::size_t cores_;
  std::mutex mutex_;
  std::size_t submitted_ = 0;
  std::vector<std::thread> threads_;
};

void sleep_ms(int time) { std::this_thread::sleep_for(std::chrono::milliseconds(time)); }

struct counted_work final : mr::detail::dispatcher_work {
  std::atomic<std::uint64_t> done{0};
  void run(std::size_t, std::uint64_t, std::size_t) noexcept override {}
  void publish(std::uint64_t, std::size_t count) noexcept override { done += count; }
  void wait_for(std::uint64_t tickets) const {
    while (done.load() < tickets) std::this_thread::yield();
  }
};

constexpr std::int64_t very_long_ns = 3'600'000'000'000;
constexpr std::uint64_t turn_ns = 5'000'000;   // of a worker, as in the dispatcher

/// Tickets of a millisecond of a core each; or asleep, far longer than a thread waits for a core.
struct slow_work final : mr::detail::dispatcher_work {
  std::atomic<bool> sleeps{false};
  void run(std::size_t, std::uint64_t, std::size_t count) noexcept override {
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t end = mr::detail::read_clock_ns(CLOCK_THREAD_CPUTIME_ID) + 1'000'000;
      while (!sleeps.load() && mr::detail::read_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
      }
      if (sleeps.load()) sleep_ms(50);
    }
  }
  void publish(std::uint64_t, std::size_t) noexcept override {}
};

/// A dispatcher, its work, and the threads of its workers.
template <class Work = counted_work>
struct staffed {
  Work work{};
  counting_executor threads;
  std::shared_ptr<dispatcher> tickets;

  explicit staffed(const dispatcher::options& o, std::size_t cores = 0)
      : threads(cores), tickets(mr::detail::make_aligned_shared<dispatcher>(work, o)) {
    tickets->attach(&threads);
  }
  std::size_t active() const { return tickets->statistics("map", mr::detail::steady_now_ns()).concurrency; }
};

}  // namespace

TEST_CASE("an idle worker stays, and is called") {
  const stall_watchdog watchdog;
  staffed<> one({.sleep_ns = very_long_ns});
  one.tickets->set_limit(1'000'000);
  const std::uint64_t start = mr::detail::steady_now_ns();
  for (std::uint64_t n = 1; n <= 2'000; ++n) {
    one.tickets->set_available(n);
    one.work.wait_for(n);
    if (n % 64 == 0) sleep_ms(1);   // it sleeps now
  }
  // A worker leaves only after its turn, so that a slow machine has more workers.
  CHECK(one.threads.submitted() <= 1 + (mr::detail::steady_now_ns() - start) / turn_ns);
  one.tickets->stop();
  one.tickets->join();
}

TEST_CASE("a claim is counted before others see its results") {
  const stall_watchdog watchdog;
  struct watched_work final : mr::detail::dispatcher_work {
    const dispatcher* of = nullptr;
    std::atomic<std::uint64_t> done{0}, uncounted{0};
    void run(std::size_t, std::uint64_t, std::size_t) noexcept override {}
    void publish(std::uint64_t first, std::size_t count) noexcept override {
      const mr::stage_statistics f = of->statistics("map", mr::detail::steady_now_ns());
      uncounted += f.items != first + count || f.service_ns.count() != first + count;
      done += count;
    }
  };
  staffed<watched_work> one({});
  one.work.of = one.tickets.get();
  one.tickets->set_limit(1'000);
  one.tickets->set_available(1'000);
  while (one.work.done.load() < 1'000) std::this_thread::yield();
  one.tickets->stop();
  one.tickets->join();
  CHECK(one.work.uncounted == 0);

  watched_work alone;
  dispatcher advanced(alone, {});
  alone.of = &advanced;
  advanced.set_limit(100);
  advanced.set_available(100);
  while (advanced.advance()) {
  }
  CHECK(alone.done == 100);
  CHECK(alone.uncounted == 0);
}

TEST_CASE("a worker that is idle for long leaves") {
  const stall_watchdog watchdog;
  staffed<> one({});
  one.tickets->set_limit(1'000'000);
  for (std::uint64_t n = 1; n <= 20; ++n) {
    one.tickets->set_available(n);
    one.work.wait_for(n);
    one.tickets->join();   // it has left
    CHECK(one.threads.submitted() == n);
  }
  one.tickets->stop();
}

TEST_CASE("a worker does not stay if it replaces another stage") {
  const stall_watchdog watchdog;
  staffed<> one({.sleep_ns = very_long_ns});
  one.threads.add_stage();
  one.tickets->set_limit(1'000'000);
  for (std::uint64_t n = 1; n <= 20; ++n) {
    one.tickets->set_available(n);
    one.work.wait_for(n);
    one.tickets->join();   // it has left
  }
  CHECK(one.threads.submitted() == 20);
  one.tickets->stop();
}

TEST_CASE("idle workers are called by every change, and each ticket is processed once") {
  const stall_watchdog watchdog;
  for (int round = 0; round < 50; ++round) {
    // A worker that is not called would stay until the end of the test.
    staffed<> one({.max_workers = 4, .sleep_ns = very_long_ns});
    constexpr std::uint64_t all = 3'000;
    std::thread producer([&] {
      for (std::uint64_t n = 1; n <= all; n += 1 + n % 7) {
        one.tickets->set_available(n);
        if (n % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
      one.tickets->set_available(all);
      one.tickets->set_last();
    });
    std::thread consumer([&] {
      for (std::uint64_t n = 5; n <= all; n += 1 + n % 11) {
        one.tickets->set_limit(n);
        if (n % 60 == 0) std::this_thread::sleep_for(std::chrono::microseconds(150));
        if (n % 500 < 5) one.tickets->set_active(1 + n % 4);
      }
      one.tickets->set_limit(all);
    });
    producer.join();
    consumer.join();
    one.work.wait_for(all);
    one.tickets->stop();
    one.tickets->join();
    CHECK(one.work.done == all);
  }
}

TEST_CASE("at the end of a run, and when they are stopped, workers leave") {
  const stall_watchdog watchdog;
  for (const bool stopped : {false, true})
    for (int round = 0; round < 20; ++round) {
      CAPTURE(stopped);
      staffed<> one({.max_workers = 2, .sleep_ns = very_long_ns});
      one.tickets->set_limit(1'000'000);
      if (!stopped) one.tickets->set_last();
      one.tickets->set_available(2);
      one.work.wait_for(2);
      if (stopped && round % 2 == 0) sleep_ms(1);
      if (stopped) one.tickets->stop();
      one.tickets->join();
      CHECK(one.work.done == 2);
    }
}

TEST_CASE("with more workers than cores only as many are active as the cores have time for") {
  if (!mr::detail::run_delay_of_this_thread_ns()) {
    MESSAGE("this system does not report how long a thread was ready to run, and did not");
    return;
  }
  const stall_watchdog watchdog;
  staffed<slow_work> some({.max_workers = 8}, 2);
  const int cores_calls = some.threads.cores_calls;
  const auto wait_for_active = [&](std::size_t target) {
    while (some.active() != target) sleep_ms(5);
  };
  some.tickets->set_limit(1'000'000);
  some.tickets->set_available(1'000'000);
  wait_for_active(2);
  some.work.sleeps = true;
  wait_for_active(8);
  some.work.sleeps = false;
  wait_for_active(2);
  some.tickets->set_active(5);   // as tuning does, for its own reasons
  sleep_ms(200);
  CHECK(some.active() == 5);
  some.tickets->stop();
  some.tickets->join();
  CHECK(some.threads.cores_calls == cores_calls);   // a worker that has left must not use the executor
}

TEST_CASE("join() waits for a thread in submit(), although the task that it submitted is over") {
  const stall_watchdog watchdog;
  struct slow_executor final : mr::detail::worker_executor {
    std::atomic<bool> ran{false}, joined{false}, joined_in_submit{false};
    bool shared() const noexcept override { return true; }
    void submit(std::shared_ptr<mr::detail::worker_task> task, std::size_t worker) override {
      std::thread([&] { task->run_as_worker(worker); }).join();
      ran = true;
      for (int i = 0; i < 50 && !joined; ++i) sleep_ms(1);
      joined_in_submit = joined_in_submit || joined;
    }
  } executor;
  counted_work work;
  const auto tickets = mr::detail::make_aligned_shared<dispatcher>(work, dispatcher::options{.sleep_ns = 0});
  tickets->attach(&executor);
  tickets->set_limit(1);
  std::thread source([&] { tickets->set_available(1); });
  while (!executor.ran) std::this_thread::yield();
  tickets->stop();
  tickets->join();
  executor.joined = true;
  source.join();
  CHECK_FALSE(executor.joined_in_submit);
  CHECK(work.done == 1);
}

TEST_CASE("all workers are active if there are as many cores, or if threads wait") {
  const stall_watchdog watchdog;
  for (const std::size_t cores : {std::size_t{0}, std::size_t{3}}) {
    staffed<slow_work> some({.max_workers = 3}, cores);
    some.tickets->set_limit(1'000'000);
    some.tickets->set_available(1'000'000);
    sleep_ms(300);
    CHECK(some.active() == 3);
    some.tickets->stop();
    some.tickets->join();
  }
}

TEST_CASE("a thread that waits for one ticket after the other is woken for each") {
  struct idle final : mr::detail::dispatcher_work {
    void run(std::size_t, std::uint64_t, std::size_t) noexcept override {}
    void publish(std::uint64_t, std::size_t) noexcept override {}
  } work;
  const stall_watchdog watchdog;
  for (int round = 0; round < 20; ++round) {
    const auto tickets =
        mr::detail::make_aligned_shared<mr::detail::dispatcher>(work, mr::detail::dispatcher::options{});
    std::atomic<std::uint64_t> last{0};
    std::thread producer([&] {
      for (std::uint64_t n = 1; n <= 100; ++n) {
        while (last.load() + 1 < n) std::this_thread::yield();
        if (n % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));   // the other sleeps now
        tickets->set_available(n);
      }
    });
    for (std::uint64_t ticket = 0; ticket < 100; last = ++ticket) tickets->wait_for_available(ticket);
    producer.join();
    CHECK(tickets->available() == 100);
  }
}

TEST_CASE("another thread claims the tickets beyond two claims of each worker, and returned tickets are next") {
  struct recorded_work final : mr::detail::dispatcher_work {
    std::vector<std::pair<std::uint64_t, std::size_t>> claims;
    void run(std::size_t, std::uint64_t first, std::size_t count) noexcept override {
      claims.emplace_back(first, count);
    }
    void publish(std::uint64_t, std::size_t) noexcept override {}
  } work;
  struct counting_listener final : mr::detail::space_listener {
    int calls = 0;
    void space_freed() noexcept override { ++calls; }
  } listener;
  const auto d = std::make_shared<dispatcher>(work, dispatcher::options{.max_workers = 1, .together = 2, .group = 10});
  d->set_available(20);
  CHECK(listener.calls == 0);
  d->share_with(listener, 20);
  std::uint64_t first = 99;
  CHECK(d->claim_surplus(8, 0, first) == 0);   // no ticket has space
  d->set_limit(20);
  CHECK(listener.calls == 1);
  CHECK(d->claim_surplus(8, 1, first) == 0);   // the next ticket is 0
  CHECK(d->claim_surplus(8, 0, first) == 8);
  CHECK(first == 0);
  CHECK(d->claim_surplus(8, 0, first) == 2);   // the end of the group
  CHECK(first == 8);
  CHECK(d->has_surplus());
  CHECK(d->claim_surplus(8, 0, first) == 6);   // two claims of two tickets are left
  CHECK(first == 10);
  CHECK_FALSE(d->has_surplus());
  CHECK(d->claim_surplus(8, 0, first) == 0);
  d->give_back(12, 3);
  d->give_back(5, 1);
  CHECK(d->has_claimable());
  while (d->advance()) {
  }
  using claim = std::pair<std::uint64_t, std::size_t>;
  CHECK(work.claims == std::vector<claim>{{5, 1}, {12, 2}, {14, 1}, {16, 2}, {18, 2}});
  CHECK_FALSE(d->has_claimable());
  d->set_available(40);
  CHECK(listener.calls == 2);
}

TEST_CASE("a sleeping worker claims returned tickets") {
  counted_work work;
  counting_executor executor;
  const auto d = mr::detail::make_aligned_shared<dispatcher>(
      work, dispatcher::options{.max_workers = 1, .together = 1, .group = 100, .sleep_ns = very_long_ns});
  struct no_listener final : mr::detail::space_listener {
    void space_freed() noexcept override {}
  } listener;
  d->attach(&executor);
  d->share_with(listener, 4);
  d->set_limit(10);
  d->set_available(4);
  work.wait_for(4);   // the worker may sleep from now on
  d->give_back(0, 2);   // as if another thread had claimed them
  work.wait_for(6);
  d->stop();
  d->join();
}
