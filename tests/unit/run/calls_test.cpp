// Calls that a session refuses: by two threads at once, in a forked child, for an epoch that has passed, and of a batch
// or a session that was moved from. A session that no thread uses can be moved.
#include "../../eventually.hpp"
#include "quiet_sessions.hpp"

#include <millrace/millrace.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/expand.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

namespace mr = millrace;

namespace {

struct row {
  std::int32_t n;
};

auto flow(int count = 100) {
  return mr::from(numbers(count)) | mr::map([](int n) { return row{n}; }) |
         mr::batch<&row::n>({.size = 10, .keys = true});
}
using run_of_rows = decltype(mr::session(flow()));

std::string refusal_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const mr::setup_error& e) {
    return e.what();
  }
  return "no error";
}

/// Runs `act` in a child, which has to end within the watchdog's time, and returns its exit code; -1 after a signal.
int code_of_child(const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(100);
    _exit(act());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::size_t rows_of(run_of_rows& run) {
  std::size_t rows = 0;
  for (auto& b : run) rows += b.size();
  return rows;
}

}  // namespace

TEST_CASE("a second call for a batch is refused while the first one has not returned, on any thread") {
  const stall_watchdog watchdog;
  std::atomic<bool> open{false};
  std::atomic<int> at_gate{0};
  auto gated = mr::from(numbers(40)) | mr::map([&](int n) {
                 if (n == 20) {
                   ++at_gate;
                   while (!open) std::this_thread::yield();
                 }
                 return row{n};
               }) | mr::batch<&row::n>({.size = 10});
  mr::session run{std::move(gated), quiet(1)};
  std::size_t rows = 0;
  std::thread first([&] {
    for (auto& b : run) rows += b.size();
  });
  while (at_gate == 0) std::this_thread::yield();
  // The first thread is in next() or will be there: refusals begin.
  const auto refused = [&](const std::function<void()>& call) {
    std::string text;
    while ((text = refusal_of(call)) == "no error") std::this_thread::yield();
    return text;
  };
  while (run.stats().batches < 2 || run.waits().find("waits in next()") == std::string::npos) std::this_thread::yield();
  CHECK(refused([&] { static_cast<void>(run.next()); }).find("at the same time: got a second call") !=
        std::string::npos);
  CHECK(refused([&] { static_cast<void>(run.begin()); }).find("expected one") != std::string::npos);
  CHECK(refused([&] { static_cast<void>(run.epoch(0).begin()); }).find("expected one") != std::string::npos);
  open = true;
  first.join();
  CHECK(rows == 40);
}

TEST_CASE("a callable of the flow that requests a batch of its own session is refused") {
  const stall_watchdog watchdog;
  for (const int threads : {0, 1}) {
    std::function<void()> request = [] {};
    auto asking = mr::from(numbers(200)) | mr::map([&](int n) {
                    if (n >= 150) request();
                    return row{n};
                  }) | mr::batch<&row::n>({.size = 10}) | mr::prefetch({.batches = 1});
    mr::session run{std::move(asking), quiet(threads)};
    request = [&] { static_cast<void>(run.next()); };
    std::string text;
    try {
      for (auto& b : run) b.release();
    } catch (const mr::error& e) {
      text = e.what();
    }
    CHECK_MESSAGE((text.find("got a second call") != std::string::npos || threads > 0), text);
  }
}

TEST_CASE("a session that is destroyed while another thread waits in next() ends that call first") {
  const stall_watchdog watchdog;
  for (int round = 0; round < 5; ++round) {
    std::atomic<bool> open{false};
    auto gated = mr::from(numbers(40)) | mr::map([&](int n) {
                   while (n >= 10 && !open) std::this_thread::yield();
                   return row{n};
                 }) | mr::batch<&row::n>({.size = 10}) | mr::prefetch({.batches = 1});
    std::optional<decltype(mr::session(gated))> run(std::in_place, std::move(gated), quiet(1));
    std::thread other([&] {
      CHECK(run->next().size() == 10);
      static_cast<void>(run->next());   // returns, with a batch or without one
    });
    while (run->stats().batches == 0 || run->waits().find("waits in next() for batch 1") == std::string::npos)
      std::this_thread::yield();
    std::thread opens([&] { open = true; });
    run.reset();
    other.join();
    opens.join();
  }
}

TEST_CASE("the destructor of a session waits for a callable that another thread runs in next()") {
  const stall_watchdog watchdog;
  std::atomic<bool> inside{false}, open{false}, destroyed{false};
  auto gated = mr::from(numbers(80)) | mr::map([&](int n) {
                 if (n < 40) return row{n};
                 inside = true;
                 while (!open) std::this_thread::yield();
                 return row{n};
               }) | mr::batch<&row::n>({.size = 10});
  std::optional<decltype(mr::session(gated))> run(std::in_place, std::move(gated), quiet(0));
  std::thread other([&, &session = *run] {
    while (!inside && session.next()) continue;   // the last call is that of the callable
  });
  while (!inside) std::this_thread::yield();
  std::thread destroys([&] {
    run.reset();
    destroyed = true;
  });
  // A destructor that does not wait has returned by then; one that waits has not, however long this lasts.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(!destroyed);
  open = true;
  other.join();
  destroys.join();
}

TEST_CASE("a session in a forked child refuses next(), and its destructor leaves threads alone that do not exist") {
  const stall_watchdog watchdog;
  for (int round = 0; round < 5; ++round) {
    auto run = std::make_unique<run_of_rows>(flow(), quiet(2));
    auto lease = run->next();
    CHECK(code_of_child([&] {
      int code = 1;
      try {
        const auto mine = std::move(run);   // destroyed by the exception
        for (auto& b : *mine) b.release();
      } catch (const mr::setup_error& e) {
        code = std::string(e.what()).find("before fork()") != std::string::npos ? 42 : 2;
      }
      lease.release();
      return code;
    }) == 42);
    CHECK(code_of_child([&] {
      run_of_rows mine{flow(), quiet(2)};   // in addition to the parent's
      return rows_of(mine) == 100 ? 42 : 1;
    }) == 42);
    CHECK(rows_of(*run) == 90);
    run.reset();
    CHECK(code_of_child([&] {
      run_of_rows mine{flow(), quiet(2)};   // after the parent's
      return rows_of(mine) == 100 ? 42 : 1;
    }) == 42);
  }
}

TEST_CASE("a static session is destroyed at exit() of a forked child") {
  const stall_watchdog watchdog;
  static pid_t parent = getpid();
  // Called after the destructor of `global`, and before the report of leaks: the child does not free objects of the
  // parent.
  static_cast<void>(std::atexit([] {
    if (getpid() != parent) _exit(42);
  }));
  static std::unique_ptr<run_of_rows> global;
  global = std::make_unique<run_of_rows>(flow(), quiet(2));
  static_cast<void>(global->next());
  const pid_t child = fork();
  if (child == 0) {
    alarm(100);
    std::exit(1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 42);
  global.reset();
}

TEST_CASE("every member of a moved-from or released batch reports that") {
  run_of_rows run{flow(), quiet(1)};
  auto b = run.next();
  const auto lease = std::move(b);
  CHECK(lease.size() == 10);
  auto released = run.next();
  released.release();
  for (auto* const empty : {&b, &released}) {
    const auto check = [&](const char* name, const std::function<void()>& call) {
      const std::string text = refusal_of(call);
      CHECK_MESSAGE(text.find(std::string(name) + " was called on an empty batch") != std::string::npos, text);
    };
    CHECK_FALSE(*empty);
    check("size()", [&] { static_cast<void>(empty->size()); });
    check("get()", [&] { static_cast<void>(empty->get<&row::n>()); });
    check("columns()", [&] { static_cast<void>(empty->columns()); });
    check("valid()", [&] { static_cast<void>(empty->valid()); });
    check("valid()", [&] { static_cast<void>(empty->replaced()); });
    check("keys()", [&] { static_cast<void>(empty->keys()); });
    check("epoch()", [&] { static_cast<void>(empty->epoch()); });
    check("step()", [&] { static_cast<void>(empty->step()); });
    check("position()", [&] { static_cast<void>(empty->position()); });
    check("resume_text()", [&] { static_cast<void>(empty->resume_text()); });
    check("stream()", [&] { static_cast<void>(empty->stream()); });
    check("slot()", [&] { static_cast<void>(empty->slot()); });
    check("global_size()", [&] { static_cast<void>(empty->global_size()); });
    check("device_ordinal()", [&] { static_cast<void>(empty->device_ordinal()); });
    check("also_used_on()", [&] { empty->also_used_on({}); });
    check("is_used_on()", [&] { static_cast<void>(empty->is_used_on({})); });
  }
  while (run.next()) {
  }
  CHECK(run.next().size() == 0);   // the end of the run
  run_of_rows other = std::move(run);
  CHECK(refusal_of([&] { static_cast<void>(run.next()); }).find("was moved from") != std::string::npos);
  CHECK(refusal_of([&] { static_cast<void>(run.stats()); }).find("was moved from") != std::string::npos);
  CHECK(refusal_of([&] { static_cast<void>(run.slots()); }).find("was moved from") != std::string::npos);
}

TEST_CASE("an epoch that has passed is refused, and one that was left early is continued") {
  const auto loop = [](run_of_rows& run, std::uint64_t epoch, int batches = 100) {
    std::vector<std::int32_t> first;
    for (auto& b : run.epoch(epoch)) {
      first.push_back(b.get<&row::n>()[0]);
      if (static_cast<int>(first.size()) == batches) break;
    }
    return first;
  };
  const auto refused = [&](run_of_rows& run, std::uint64_t epoch) {
    return refusal_of([&] { loop(run, epoch); }).find("has passed epoch " + std::to_string(epoch)) != std::string::npos;
  };
  {
    run_of_rows run{flow(), quiet(1, 4)};
    CHECK(loop(run, 0).size() == 10);
    CHECK(refused(run, 0));   // completed
    CHECK(refused(run, 0));
    CHECK(loop(run, 1, 3).back() == 20);
    CHECK(refused(run, 0));
    CHECK(loop(run, 1, 3).front() == 30);   // left early: continues
    CHECK(loop(run, 2, 3).front() == 0);
    CHECK(refused(run, 1));   // left permanently
    CHECK(loop(run, 2).size() == 7);
    CHECK(refused(run, 2));
    CHECK(loop(run, 3).size() == 10);
  }
  {
    run_of_rows run{flow(), quiet(1, 3)};
    for (auto& b : run)   // an ordinary loop, left in epoch 1
      if (b.epoch() == 1) break;
    CHECK(refused(run, 0));
    CHECK(loop(run, 1).size() == 9);
  }
  {
    run_of_rows run{flow(), quiet(1, 3)};
    for (int i = 0; i < 11; ++i) static_cast<void>(run.next());
    CHECK(refused(run, 0));
    CHECK(loop(run, 1).size() == 9);
    auto options = quiet(1, 3);
    const auto last = run.next();
    options.resume = last.resume_text();
    CHECK(options.resume == mr::to_text(last.position()));
    run_of_rows resumed{flow(), options};
    CHECK(loop(resumed, 0).empty());   // before the resume point
    CHECK(loop(resumed, 2).size() == 9);
  }
}

namespace {

struct example {
  std::int64_t number;
};

template <class Session>
std::vector<std::int64_t> collect(Session& run) {
  std::vector<std::int64_t> all;
  for (auto& b : run)
    for (const auto n : b.template get<&example::number>().host()) all.push_back(n);
  return all;
}

/// Runs on one thread, because it has a finish().
struct repeated {
  using output = int;
  std::unique_ptr<int> times;
  std::size_t max_outputs(int) const { return 2; }
  void push(int n, auto& emit) {
    for (int i = 0; i < *times; ++i) emit(int{n});
  }
  void finish(auto&) {}
};

std::optional<example> nothing_more() { return std::nullopt; }

}  // namespace

TEST_CASE("items must be movable, nothing more") {
  struct unique_example {
    std::unique_ptr<int> number;
  };
  int count = 0;
  mr::session run{mr::from([&]() -> std::optional<unique_example> {
                    if (count == 12) return std::nullopt;
                    return unique_example{std::make_unique<int>(count++)};
                  }) | mr::map([](unique_example e) {
                    return example{*e.number};
                  }) | mr::batch<&example::number>({.size = 4}),
                  quiet(2)};
  CHECK(collect(run).size() == 12);
}

TEST_CASE("generators and callables must be movable, nothing more") {
  struct count_to {
    std::unique_ptr<int> last;
    int at = 0;
    std::optional<int> operator()() { return at < *last ? std::optional(at++) : std::nullopt; }
  };
  auto flow = mr::from(count_to{std::make_unique<int>(20)}) |
              mr::map([by = std::make_unique<int>(3)](int n) { return n * *by; }) |
              mr::filter([divisor = std::make_unique<int>(2)](int n) { return n % *divisor == 0; }) |
              mr::expand(repeated{std::make_unique<int>(2)}) |
              mr::map([more = std::make_unique<int>(1)](int n) { return example{n + *more}; }) |
              mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow), quiet(2)};
  const auto all = collect(run);
  REQUIRE(all.size() == 20);
  for (std::size_t i = 0; i < 20; ++i) CHECK(all[i] == static_cast<std::int64_t>(i / 2 * 6 + 1));
}

TEST_CASE("a plain function is a generator") {
  mr::session run{mr::from(nothing_more) | mr::batch<&example::number>({.size = 4}), quiet(2)};
  CHECK_THROWS_WITH_AS((void)run.next(), doctest::Contains("no sample"), mr::data_error);
}
