#include "../../copying_device.hpp"
#include "../../eventually.hpp"
#include "quiet_sessions.hpp"

#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <thread>

namespace mr = millrace;

namespace {

struct example {
  std::int64_t number;
  double draw;
};

/// One type, so that flows that create their examples in other ways are compiled once.
using maker = std::function<example(int, mr::rng&)>;
const maker prepare = [](int n, mr::rng& random) -> example { return {n, random.uniform()}; };
using generator = std::function<std::optional<int>()>;

/// All numbers in the order of delivery.
template <class Session>
std::vector<std::int64_t> collect(Session& run) {
  std::vector<std::int64_t> all;
  for (auto& b : run)
    for (const auto n : b.template get<&example::number>().host()) all.push_back(n);
  return all;
}

template <class F>
std::string refusal_of(F call) {
  try {
    call();
  } catch (const mr::setup_error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("without shuffle the items are delivered in order, once each, in batches of the requested size") {
  for (const int threads : {0, 1, 2, 4}) {
    mr::session run{
        mr::from(numbers(100)) | mr::map(prepare) | mr::batch<&example::number>({.size = 8, .drop_last = false}),
        quiet(threads)};
    std::int64_t next = 0;
    std::uint64_t step = 0;
    for (auto& b : run) {
      CHECK(b.step() == step++);
      CHECK(b.epoch() == 0);
      CHECK(b.size() == (step == 13 ? 4 : 8));
      for (const auto n : b.get<&example::number>().host()) CHECK(n == next++);
    }
    CHECK(next == 100);
  }
}

TEST_CASE("order and draws do not depend on workers, I/O threads, depth or device") {
  std::vector<std::pair<std::int64_t, double>> expected;
  for (const int threads : {0, 1, 2, 3, 8})
    for (const unsigned io_threads : {1U, 3U})
      for (const std::size_t depth : {1U, 4U})
        for (const bool copying : {false, true}) {
          const mr::device device = copying ? copying_device() : mr::host_device();
          mr::session run{mr::from(numbers(1'000), {.seed = 3}) | mr::shuffle({.window = 100}) | mr::map(prepare) |
                              mr::batch<&example::number, &example::draw>({.size = 64}) |
                              mr::prefetch({.batches = depth}) | mr::to_device({.device = device}),
                          {.epochs = 2, .threads = threads, .io_threads = io_threads, .notice = mr::quiet}};
          std::vector<std::pair<std::int64_t, double>> got;
          for (auto& b : run) {
            auto [number, draw] = b.columns();
            for (std::size_t i = 0; i < b.size(); ++i) got.emplace_back(number.host()[i], draw.host()[i]);
          }
          if (expected.empty()) expected = got;
          CHECK(got == expected);
        }
  CHECK(expected.size() == 2 * 960);
}

TEST_CASE("each epoch is an exact pass, in another order and with other draws") {
  mr::session run{mr::from(numbers(90), {.seed = 1}) | mr::shuffle({.window = 30}) | mr::map(prepare) |
                      mr::batch<&example::number, &example::draw>({.size = 20, .drop_last = false}),
                  quiet(2, 3)};
  std::map<std::uint64_t, std::vector<std::int64_t>> by_epoch;
  std::set<double> draws;
  for (auto& b : run) {
    auto [number, draw] = b.columns();
    for (const auto n : number.host()) by_epoch[b.epoch()].push_back(n);
    for (const auto d : draw.host()) draws.insert(d);
  }
  REQUIRE(by_epoch.size() == 3);
  CHECK(by_epoch[0] != by_epoch[1]);
  CHECK(draws.size() == 270);
  for (auto& [epoch, numbers] : by_epoch) {
    std::sort(numbers.begin(), numbers.end());
    REQUIRE(numbers.size() == 90);
    for (std::int64_t i = 0; i < 90; ++i) CHECK(numbers[static_cast<std::size_t>(i)] == i);
  }
}

TEST_CASE("a loop over one epoch ends at its boundary, and the next continues from there") {
  for (const int threads : {0, 2})
    for (const bool copying : {false, true}) {
      mr::session run{mr::from(numbers(50)) | mr::map(prepare) | mr::batch<&example::number>({.size = 8}) |
                          mr::to_device({.device = copying ? copying_device() : mr::host_device()}),
                      quiet(threads, 4)};
      for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
        int batches = 0;
        for (auto& b : run.epoch(epoch)) {
          CHECK(b.epoch() == epoch);
          CHECK(b.get<&example::number>().host()[0] == 8 * batches);
          ++batches;
          if (epoch == 1 && batches == 3) break;   // the rest of the epoch is passed over
        }
        CHECK(batches == (epoch == 1 ? 3 : 6));
      }
      CHECK_FALSE(run.next());
    }
}

TEST_CASE("an exception in a map is thrown at its batch, after all earlier ones, and ends the session") {
  for (const int threads : {0, 1, 4})
    for (const bool copying : {false, true}) {
      mr::session run{mr::from(numbers(200)) | mr::map(maker([](int n, mr::rng&) -> example {
                        if (n == 77 || n == 70 || n == 150) throw std::runtime_error("number " + std::to_string(n));
                        return {n, 0};
                      })) | mr::batch<&example::number>({.size = 16}) |
                          mr::to_device({.device = copying ? copying_device() : mr::host_device()}),
                      quiet(threads)};
      int batches = 0;
      try {
        for (auto& b : run) batches += b.size() == 16;
        FAIL("no error");
      } catch (const mr::stage_error& e) {
        CHECK(e.message() == "number 70");   // the lowest position of the batch
        CHECK(e.where().position == 70);
        CHECK(e.where().stage == "map 1");
      }
      CHECK(batches == 4);
      for (int again = 0; again < 2; ++again)
        CHECK(refusal_of([&] { run.next(); }) ==
              "millrace: the session has ended with an error: number 70 (stage map 1, position 70). Create a "
              "new session");
      CHECK_THROWS_AS(run.begin(), mr::setup_error);
    }
}

TEST_CASE("the very first sample may be the bad one") {
  const maker none = [](int, mr::rng&) -> example { throw std::runtime_error("no"); };
  mr::session run{mr::from(numbers(9)) | mr::map(none) | mr::batch<&example::number>({.size = 4}), quiet(2)};
  CHECK_THROWS_AS(run.next(), mr::stage_error);
  CHECK(refusal_of([&] { run.next(); }).starts_with("millrace: the session has ended with an error: no ("));
}

TEST_CASE("a loop over a session that is over is refused, and so is one over a missing epoch") {
  const auto new_run = [](std::uint64_t epochs) {
    return mr::session{mr::from(numbers(50)) | mr::map(prepare) | mr::batch<&example::number>({.size = 10}),
                       quiet(1, epochs)};
  };
  auto once = new_run(1);
  CHECK(collect(once).size() == 50);
  CHECK(refusal_of([&] { collect(once); }) ==
        "millrace: the session is over: got another loop, expected none after its one epoch. Raise "
        "session_options::epochs, or create a new session");
  CHECK_FALSE(once.next());   // the end, on every call
  auto thrice = new_run(3);
  for (std::uint64_t e = 0; e < 3; ++e) {
    std::size_t batches = 0;
    for (auto& b : thrice.epoch(e)) {
      CHECK(b.epoch() == e);
      if (++batches == 5 && e == 1) break;
    }
    CHECK(batches == 5);
    if (e == 1)
      for ([[maybe_unused]] auto& b : thrice.epoch(e)) FAIL("the epoch had all its batches");
  }
  CHECK(refusal_of([&] { static_cast<void>(thrice.epoch(3).begin()); }) ==
        "millrace: the session is over: got a loop over epoch 3, expected none after all its 3 epochs. Raise "
        "session_options::epochs, or create a new session");
  CHECK(refusal_of([&] { collect(thrice); }).find("got another loop,") != std::string::npos);
  auto left_at_the_end = new_run(1);
  int batches = 0;
  for ([[maybe_unused]] auto& b : left_at_the_end)
    if (++batches == 5) break;
  CHECK(refusal_of([&] { collect(left_at_the_end); }).find("got another loop,") != std::string::npos);
}

TEST_CASE("zero epochs are refused by their name") {
  CHECK(refusal_of([] {
          const auto flow = mr::from(numbers(50)) | mr::map(prepare) | mr::batch<&example::number>({.size = 10});
          const mr::session run{flow, quiet(1, 0)};
        }) == "millrace: session_options::epochs is invalid: got 0, expected at least 1. Omit epochs to run one epoch");
}

TEST_CASE("an exception in the step leaves the loop and stops everything") {
  const auto train = [] {
    mr::session run{mr::from(numbers(10'000)) | mr::map(prepare) | mr::batch<&example::number>({.size = 4}), quiet(2)};
    for (auto& b : run)
      if (b.step() == 3) throw std::logic_error("step");
  };
  CHECK_THROWS_AS(train(), std::logic_error);
}

TEST_CASE("a batch moved out of the loop stays unchanged, even after the session") {
  std::vector<mr::batch_of<&example::number>> leases;
  {
    mr::session run{mr::from(numbers(64)) | mr::map(prepare) | mr::batch<&example::number>({.size = 8}) |
                        mr::prefetch({.batches = 4}),
                    quiet(2)};
    for (auto& b : run)
      if (b.step() % 3 == 0) leases.push_back(std::move(b));
  }
  REQUIRE(leases.size() == 3);
  for (std::size_t k = 0; k < leases.size(); ++k)
    for (std::size_t i = 0; i < 8; ++i)
      CHECK(leases[k].get<&example::number>().host()[i] == static_cast<std::int64_t>(24 * k + i));
}

TEST_CASE("requesting a batch while all slots are leased is refused, unless others release") {
  for (const bool copying : {false, true}) {
    const auto flow = [&] {
      return mr::from(numbers(640)) | mr::map(prepare) | mr::batch<&example::number>({.size = 8}) |
             mr::prefetch({.batches = 2}) |
             mr::to_device({.device = copying ? copying_device() : mr::host_device(), .slots = 3});
    };
    {
      mr::session run{flow(), quiet(2)};
      std::vector<mr::batch_of<&example::number>> leases;
      CHECK_THROWS_WITH_AS(while (auto b = run.next()) leases.push_back(std::move(b)),
                           doctest::Contains("all slots are leased"), mr::setup_error);
      CHECK(leases.size() == 3);
      leases.erase(leases.begin());   // out of order is fine
      CHECK(run.next().get<&example::number>().host()[0] == 24);
    }
    auto options = quiet(2);
    options.leases_released_by_other_threads = true;
    mr::session run{flow(), options};
    std::vector<mr::batch_of<&example::number>> leases;
    for (int i = 0; i < 3; ++i) leases.push_back(run.next());
    std::thread other([&] { leases.clear(); });
    CHECK(run.next().get<&example::number>().host()[0] == 24);
    other.join();
  }
}

TEST_CASE("feed runs the step on every batch") {
  std::int64_t sum = 0;
  const auto stats = mr::feed(mr::from(numbers(100)) | mr::map(prepare) | mr::batch<&example::number>({.size = 10}),
                              quiet(2), [&](auto& b) {
                                for (const auto n : b.template get<&example::number>().host()) sum += n;
                              });
  CHECK(sum == 4950);
  CHECK(stats.batches == 10);
  CHECK(stats.samples == 100);
}

TEST_CASE("a session larger than its budget is refused at start, with the formula") {
  auto options = quiet(1);
  options.memory_bytes = 100'000;
  const auto make = [&] {
    mr::session run{mr::from(numbers(100'000)) | mr::map(prepare) | mr::batch<&example::number>({.size = 10'000}),
                    options};
  };
  CHECK_THROWS_WITH_AS(make(), doctest::Contains("host slots x 80 kB"), mr::setup_error);
}

TEST_CASE("an epoch smaller than a batch is an error, not an empty loop") {
  const auto run = [] {
    mr::feed(mr::from(numbers(5)) | mr::map(prepare) | mr::batch<&example::number>({.size = 8}), quiet(2),
             [](auto&) {});
  };
  CHECK_THROWS_WITH_AS(run(), doctest::Contains("only 5 samples"), mr::setup_error);
}

TEST_CASE("an empty source is an error") {
  const auto rows = [](auto source) {
    mr::session run{std::move(source) | mr::map(prepare) | mr::batch<&example::number>({.size = 8}), quiet(2)};
    return run.next().size();
  };
  CHECK_THROWS_WITH_AS(rows(mr::from(std::list<int>{})), doctest::Contains("no sample"), mr::data_error);
  CHECK_THROWS_WITH_AS(rows(mr::from(std::vector<int>{})), doctest::Contains("the range of from() is empty"),
                       mr::setup_error);
}

TEST_CASE("a generator is called until it ends, and again for the next epoch") {
  int calls = 0;
  mr::session run{
      mr::from(generator([&] { return ++calls % 11 == 0 ? std::nullopt : std::optional(calls % 11); })) |
          mr::map(prepare) | mr::batch<&example::number>({.size = 5}),
      quiet(2, 2)};
  const auto all = collect(run);
  REQUIRE(all.size() == 20);
  for (std::size_t i = 0; i < 20; ++i) CHECK(all[i] == static_cast<std::int64_t>(i % 10 + 1));
}

TEST_CASE("a generator is never called by two threads at a time") {
  std::atomic<bool> inside{false}, overlapped{false};
  int calls = 0;
  mr::feed(mr::from(generator([&] {
             if (inside.exchange(true)) overlapped.store(true);
             std::this_thread::sleep_for(std::chrono::microseconds(100));
             inside.store(false);
             return ++calls % 11 == 0 ? std::nullopt : std::optional(calls % 11);
           })) | mr::map(prepare) | mr::batch<&example::number>({.size = 5}),
           quiet(2, 8), [](auto&) {});
  CHECK_FALSE(overlapped.load());
  CHECK(calls == 88);
}

TEST_CASE("a blocking map runs on its own threads, all at once") {
  std::atomic<int> at_once{0};
  std::atomic<bool> enough{false};
  mr::session run{mr::from(numbers(64)) |
                      mr::map(
                          maker([&](int n, mr::rng&) {
                            if (++at_once > 4) enough = true;
                            if (n > 0) CHECK(eventually([&] { return enough.load(); }));   // 0 is computed alone
                            --at_once;
                            return example{n, 0};
                          }),
                          {.blocking = true, .threads = 8}) |
                      mr::batch<&example::number>({.size = 32}),
                  quiet(1)};
  const auto all = collect(run);
  CHECK(std::is_sorted(all.begin(), all.end()));
  CHECK(enough.load());
}

TEST_CASE("stats count the delivered samples") {
  mr::session run{mr::from(numbers(100)) | mr::map(prepare) | mr::batch<&example::number>({.size = 10}), quiet(2)};
  collect(run);
  const auto s = run.stats();
  CHECK(s.batches == 10);
  CHECK(s.samples == 100);
  CHECK(s.samples_read == 100);
  CHECK(s.workers == 2);
  CHECK(s.slot_bytes == 256);
}

TEST_CASE("after fork() the child is asked to create its own session") {
  mr::session run{mr::from(numbers(100)) | mr::map(prepare) | mr::batch<&example::number>({.size = 8}), quiet(1)};
  CHECK(run.next().size() == 8);
  const pid_t child = fork();
  if (child == 0) {
    try {
      static_cast<void>(run.next());
    } catch (const mr::setup_error& e) {
      _exit(std::string(e.what()).find("fork()") != std::string::npos ? 42 : 1);
    }
    _exit(2);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 42);
  CHECK(run.next().size() == 8);   // the parent continues
}
