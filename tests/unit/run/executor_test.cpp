// Sessions whose workers run on a user's threads.
#include "../../eventually.hpp"
#include "executor_runs.hpp"

#include <millrace/run/user_executor.hpp>
#include <millrace/tune/tuning.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace mr = millrace;

namespace {

/// Keeps tasks until the test runs or drops them.
struct keeping_executor final : mr::executor {
  void submit(std::function<void()> task) override {
    const std::lock_guard lock(mutex);
    tasks.push_back(std::move(task));
  }
  unsigned concurrency() const noexcept override { return 8; }
  std::size_t count() {
    const std::lock_guard lock(mutex);
    return tasks.size();
  }
  /// Runs the newest task.
  void run_one() {
    std::function<void()> task;
    {
      const std::lock_guard lock(mutex);
      task = std::move(tasks.back());
      tasks.pop_back();
    }
    task();
  }
  std::mutex mutex;
  std::vector<std::function<void()>> tasks;
};

/// A pool that fails after N tasks.
struct failing_executor final : mr::executor {
  explicit failing_executor(int tasks) : left(tasks) {}
  void submit(std::function<void()> task) override {
    if (left.fetch_sub(1) <= 0) throw std::runtime_error("the pool accepts no more tasks");
    pool.submit(std::move(task));
  }
  unsigned concurrency() const noexcept override { return pool.concurrency(); }
  std::atomic<int> left;
  user_pool pool{2};
};

struct listing_task final : mr::detail::worker_task {
  void run_as_worker(std::size_t worker) noexcept override { ran.push_back(worker); }
  std::vector<std::size_t> ran;
};

std::string refusal_of(const mr::session_options& o) {
  try {
    mr::session run{plain_flow(), o};
  } catch (const mr::setup_error& e) {
    return e.what();
  }
  return "no error";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the batches of a run do not depend on the executor, on its threads or on the order of its tasks") {
  const stall_watchdog watchdog;
  const rows_of_run plain = run_of(plain_flow(), quiet(2)), staged = run_of(staged_flow(), quiet(2));
  REQUIRE(plain.rows.size() == 2'000);
  REQUIRE(plain.digest != 0);
  REQUIRE(staged.rows.size() > 1'300);
  for (const unsigned threads : {1U, 2U, 5U})
    for (const auto order :
         {user_pool::order::oldest, user_pool::order::newest, user_pool::order::any, user_pool::order::late}) {
      CAPTURE(threads);
      CAPTURE(static_cast<int>(order));
      const auto pool = std::make_shared<user_pool>(threads, order);
      CHECK(run_of(plain_flow(), on(pool)) == plain);
      CHECK(run_of(staged_flow(), on(pool)) == staged);
      CHECK(run_of(staged_flow(), on(pool, 1)) == staged);
      CHECK(pool->submitted() > 0);
    }
}

TEST_CASE("callables run on the executor's threads; blocking ones on the session's own") {
  const stall_watchdog watchdog;
  const auto pool = std::make_shared<user_pool>(2);
  const std::thread::id trainer = std::this_thread::get_id();   // it renders the first sample
  std::atomic<int> elsewhere{0}, there{0}, blocking_there{0};
  mr::session run{staged_flow([&](int n, mr::rng& random) {
                    ++(pool->has_this_thread() || std::this_thread::get_id() == trainer ? there : elsewhere);
                    return draw(n, random);
                  }),
                  on(pool)};
  CHECK(has(run.description(), "2 workers on the executor"));
  CHECK(has(run.waits(), "executor: "));
  CHECK(run.stats().workers == 2);
  static_cast<void>(rest_of(run));
  CHECK(there > 1'300);
  CHECK(elsewhere == 0);
  auto blocking = mr::from(numbers(100)) | mr::map([&](int n) -> random_row {
                    blocking_there += pool->has_this_thread();
                    return {n, 0};
                  }, {.blocking = true, .threads = 3}) |
                  mr::batch<&random_row::number, &random_row::random_value>({.size = 10});
  CHECK(run_of(std::move(blocking), on(pool)).rows.size() == 100);
  CHECK(blocking_there == 0);
}

TEST_CASE("a session uses at most its limit of threads, over all its stages, tuned or not") {
  const stall_watchdog watchdog;
  const std::thread::id trainer = std::this_thread::get_id();
  for (const bool tuned : {false, true}) {
    CAPTURE(tuned);
    const auto pool = std::make_shared<user_pool>(6);
    std::atomic<int> inside{0}, most{0}, waits{4'000};   // on a crowded machine, a yield may last milliseconds
    const auto meet = [&] {
      if (std::this_thread::get_id() == trainer) return;
      const int now = ++inside;
      for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
      }
      for (int i = 0; i < 20 && inside <= 2 && waits-- > 0; ++i) std::this_thread::yield();   // for one too many
      --inside;
    };
    mr::session_options o = on(pool, 2);
    if (tuned) o.tuning = mr::tuning({.max_workers = 16});
    mr::session run{staged_flow([&](int n, mr::rng& random) {
                      meet();
                      return draw(n, random);
                    }, 2'000, meet),
                    o};
    CHECK(has(run.description(), "tuned: up to 2 and") == tuned);
    CHECK(rest_of(run).rows.size() > 1'300);
    CHECK(most <= 2);
    CHECK(most > 0);
  }
}

TEST_CASE("threads is a limit, and 0 cannot be combined with an executor") {
  const stall_watchdog watchdog;
  const auto pool = std::make_shared<user_pool>(3);
  for (const auto& [requested, used] : {std::pair{std::optional<unsigned>(), 3U}, {1U, 1U}, {3U, 3U}, {90U, 3U}}) {
    mr::session run{plain_flow(), on(pool, requested)};
    CHECK(run.stats().workers == used);
  }
  const std::string refusal = refusal_of(on(pool, 0));
  CHECK(has(refusal, "session_options::threads"));
  CHECK(has(refusal, "session_options::executor"));
  CHECK(has(refusal_of(on(std::make_shared<user_pool>(0))), "concurrency() is 0"));
}

TEST_CASE("two sessions run on one executor of one thread") {
  const stall_watchdog watchdog;
  const rows_of_run plain = run_of(plain_flow(), quiet(1)), staged = run_of(staged_flow(), quiet(1));
  for (const auto order : {user_pool::order::oldest, user_pool::order::newest}) {
    const auto pool = std::make_shared<user_pool>(1, order);
    mr::session one{plain_flow(), on(pool)}, two{staged_flow(), on(pool)};
    std::int64_t rows_of_two = 0;
    for (auto& b : two) {   // alternately, until the first one ends
      rows_of_two += static_cast<std::int64_t>(b.size());
      if (b.step() == 20) break;
    }
    CHECK(rest_of(one) == plain);
    CHECK(static_cast<std::size_t>(rows_of_two) + rest_of(two).rows.size() == staged.rows.size());
    CHECK(two.stats().digest == staged.digest);
  }
}

TEST_CASE("a session that is destroyed in the middle leaves no callable running and never calls the executor again") {
  const stall_watchdog watchdog;
  const auto pool = std::make_shared<user_pool>(3, user_pool::order::any);
  std::atomic<int> inside{0};
  const drawing counted = [&](int n, mr::rng& random) {
    ++inside;
    std::this_thread::yield();
    --inside;
    return draw(n, random);
  };
  for (int round = 0; round < 40; ++round) {
    {
      mr::session run{staged_flow(counted, 100'000), on(pool)};
      for (int batches = round % 8; batches > 0; --batches) run.next().release();
    }
    CHECK(inside == 0);
    const std::size_t submitted = pool->submitted();
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    CHECK(pool->submitted() == submitted);
  }
}

TEST_CASE("a session is destroyed without its waiting tasks, which do nothing later") {
  const stall_watchdog watchdog;
  const auto keeper = std::make_shared<keeping_executor>();
  std::atomic<int> calls{0};
  {
    mr::session run{plain_flow([&](int n, mr::rng& random) {
                      ++calls;
                      return draw(n, random);
                    }),
                    on(keeper, 3)};
    REQUIRE(eventually([&] { return keeper->count() > 0; }));
  }
  CHECK(calls == 1);   // for the shapes
  CHECK(keeper.use_count() == 1);
  REQUIRE(keeper->count() > 0);
  while (keeper->count() > 1) keeper->run_one();
  CHECK(calls == 1);
}   // the last one is dropped

TEST_CASE("a session releases its executor on the thread that destroys the session") {
  struct watched_pool final : mr::executor {
    explicit watched_pool(std::thread::id& at) : ended_at(&at) {}
    ~watched_pool() override { *ended_at = std::this_thread::get_id(); }
    void submit(std::function<void()> task) override { pool.submit(std::move(task)); }
    unsigned concurrency() const noexcept override { return 2; }
    std::thread::id* ended_at;
    user_pool pool{2};
  };
  const stall_watchdog watchdog;
  for (int round = 0; round < 20; ++round) {
    std::thread::id ended_at;
    auto pool = std::make_shared<watched_pool>(ended_at);
    const std::weak_ptr<mr::executor> observer = pool;
    {
      mr::session run{plain_flow(), on(std::move(pool))};
      if (round % 2 == 0) run.next().release();
      CHECK_FALSE(observer.expired());
    }
    CHECK(observer.expired());
    CHECK(ended_at == std::this_thread::get_id());
  }
}

TEST_CASE("an exception of submit() ends the run, at any time") {
  const stall_watchdog watchdog;
  for (const int tasks : {0, 1, 4})
    for (const bool staged : {false, true}) {
      CAPTURE(tasks);
      CAPTURE(staged);
      const auto executor = std::make_shared<failing_executor>(tasks);
      const auto ends = [&](auto flow) {
        mr::session run{std::move(flow), on(executor)};
        CHECK_THROWS_WITH_AS(static_cast<void>(rest_of(run)), doctest::Contains("accepts no more tasks"),
                             std::runtime_error);
        CHECK_THROWS_AS(static_cast<void>(run.next()), mr::setup_error);
      };
      if (staged) ends(staged_flow(draw, 100'000));
      else ends(plain_flow(draw, 100'000));
    }
}

TEST_CASE("workers begin in the order of their submission, however the executor orders its tasks") {
  const auto keeper = std::make_shared<keeping_executor>();
  const auto task = std::make_shared<listing_task>();
  mr::detail::user_executor workers({.to = keeper, .max_tasks = 3});
  CHECK(workers.stages() == 1);   // of the user: with one more, workers do not sleep on these threads
  for (std::size_t i = 0; i < 10; ++i) workers.submit(task, i);
  for (std::size_t left = 10; left > 0; --left) {
    CHECK(keeper->count() == std::min<std::size_t>(left, 3));
    CHECK(workers.waits() == "executor: " + std::to_string(std::min<std::size_t>(left, 3)) + " of " +
                                 std::to_string(std::min<std::size_t>(left, 3)) + " tasks have not begun");
    keeper->run_one();
  }
  CHECK(keeper->count() == 0);
  CHECK(task->ran == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("release_threads() runs the queued tasks, and tasks may outlive everything") {
  const auto task = std::make_shared<listing_task>();
  std::vector<std::function<void()>> late;
  {
    auto keeper = std::make_shared<keeping_executor>();
    mr::detail::user_executor workers({.to = keeper, .max_tasks = 2});
    for (std::size_t i = 0; i < 4; ++i) workers.submit(task, i);
    workers.release_threads();
    CHECK(task->ran == std::vector<std::size_t>{0, 1, 2, 3});
    workers.submit(task, 4);
    CHECK(task->ran.size() == 5);
    CHECK(keeper->count() == 2);
    late = std::move(keeper->tasks);
  }
  for (const auto& one : late) one();
  CHECK(task->ran.size() == 5);
}

TEST_CASE("release_threads() waits for running tasks and for calls of submit()") {
  struct slow_submit final : mr::executor {
    void submit(std::function<void()>) override {
      entered = true;
      while (!open) std::this_thread::yield();
      left = true;
    }
    unsigned concurrency() const noexcept override { return 1; }
    std::atomic<bool> entered{false}, open{false}, left{false};
  };
  struct slow_task final : mr::detail::worker_task {
    void run_as_worker(std::size_t) noexcept override {
      entered = true;
      while (!open) std::this_thread::yield();
      left = true;
    }
    std::atomic<bool> entered{false}, open{false}, left{false};
  };
  const stall_watchdog watchdog;
  const auto opens = [](auto& gate) {
    return std::thread([&gate] {
      for (int i = 0; i < 2'000; ++i) std::this_thread::yield();
      gate.open = true;
    });
  };
  {
    const auto slow = std::make_shared<slow_submit>();
    mr::detail::user_executor workers({.to = slow});
    std::thread caller([&] { workers.submit(std::make_shared<listing_task>(), 0); });
    while (!slow->entered) std::this_thread::yield();
    std::thread opener = opens(*slow);
    workers.release_threads();
    CHECK(slow->left);
    opener.join();
    caller.join();
  }
  const auto pool = std::make_shared<user_pool>(1);
  const auto slow = std::make_shared<slow_task>();
  mr::detail::user_executor workers({.to = pool});
  workers.submit(slow, 0);
  while (!slow->entered) std::this_thread::yield();
  std::thread opener = opens(*slow);
  workers.release_threads();
  CHECK(slow->left);
  opener.join();
}
