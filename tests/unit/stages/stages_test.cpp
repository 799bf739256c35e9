#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/expand.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/stages/shuffle.hpp>
#include <millrace/stages/take.hpp>

#include "../read/run/replay_flows.hpp"
#include "../run/quiet_sessions.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace mr = millrace;

namespace {

struct row {
  std::int64_t n;
};

std::vector<std::int64_t> run_all(auto flow, int threads = 2) {
  std::vector<std::int64_t> all;
  for (auto& b : mr::session{std::move(flow), {.threads = threads, .notice = mr::quiet}})
    for (const auto n : b.template get<&row::n>().host()) all.push_back(n);
  return all;
}

const auto into_rows = mr::map([](int n) { return row{n}; });
const auto in_twos = mr::batch<&row::n>({.size = 2});

/// Four parts of ten numbers; the last one ends early.
struct tens {
  using item = int;
  struct reader {
    int at, end;
    bool bad;
    std::optional<int> next() {
      if (bad && at % 10 == 5) throw mr::data_error("the tens broke off", "Count again");
      return at < end ? std::optional(at++) : std::nullopt;
    }
  };
  bool last_is_bad = false;

  std::size_t shards() const { return 4; }
  reader open(std::size_t shard, std::uint64_t) const {
    const int first = static_cast<int>(shard) * 10;
    return {first, first + 10, last_is_bad && shard == 3};
  }
  std::string shard_name(std::size_t shard) const { return "ten number " + std::to_string(shard); }
};

}  // namespace

TEST_CASE("from accepts ranges that are kept elsewhere, its own ranges, and sources with parts") {
  std::list<int> list{1, 2, 3, 4};
  const std::vector<std::int64_t> expected{1, 2, 3, 4};
  auto flow = mr::from(list) | into_rows | in_twos;
  CHECK(run_all(flow) == expected);
  list = {4, 3, 2, 1};   // referred to, not copied
  CHECK(run_all(flow) == std::vector<std::int64_t>{4, 3, 2, 1});
  CHECK(run_all(mr::from(std::list<int>{1, 2, 3, 4}) | into_rows | in_twos) == expected);

  const auto all = run_all(mr::from(tens{}) | into_rows | in_twos);
  REQUIRE(all.size() == 40);
  for (int i = 0; i < 40; ++i) CHECK(all[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("an error of a source names its part, after all earlier items") {
  mr::session run{mr::from(tens{.last_is_bad = true}) | into_rows | in_twos, {.threads = 2, .notice = mr::quiet}};
  for (std::int64_t n = 0; n < 34; n += 2) CHECK(run.next().get<&row::n>().host()[0] == n);
  try {
    static_cast<void>(run.next());
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(e.where().shard == "ten number 3");
    CHECK(e.where().stage == "source");
  }
}

TEST_CASE("map passes its callable the arguments that it declares") {
  const auto plain = run_all(mr::from(numbers(8)) | mr::map([](int n) { return row{n}; }) | in_twos);
  const auto scratched = run_all(mr::from(numbers(8)) | mr::map([](int n, mr::scratch& s) {
                                   s.get<std::string>() = std::to_string(n);
                                   return row{std::stoi(s.get<std::string>())};
                                 }) | in_twos);
  CHECK(scratched == plain);
  const auto draws = mr::map([](int, mr::rng& random) { return row{static_cast<std::int64_t>(random.bits() >> 1)}; });
  const auto both = mr::map([](int, mr::rng& random, mr::scratch& s) {
    s.get<int>() = 1;
    return row{static_cast<std::int64_t>(random.bits() >> 1)};
  });
  const auto seven = run_all(mr::from(numbers(8), {.seed = 7}) | draws | in_twos);
  CHECK(run_all(mr::from(numbers(8), {.seed = 7}) | both | in_twos) == seven);
  CHECK(run_all(mr::from(numbers(8), {.seed = 8}) | draws | in_twos) != seven);
  CHECK(std::set<std::int64_t>(seven.begin(), seven.end()).size() == 8);
}

TEST_CASE("draws of one map do not change those of another") {
  struct two {
    std::int64_t first, second;
  };
  const auto seconds = [](bool greedy) {
    auto flow = mr::from(numbers(8), {.seed = 7}) | mr::map([greedy](int, mr::rng& random) {
                  for (int i = 0; greedy && i < 5; ++i) random.bits();
                  return two{1, 0};
                }) | mr::map([](two t, mr::rng& random) {
                  t.second = static_cast<std::int64_t>(random.bits() >> 1);
                  return t;
                }) | mr::batch<&two::second>({.size = 8});
    std::vector<std::int64_t> all;
    for (auto& b : mr::session{std::move(flow), {.notice = mr::quiet}})
      for (const auto n : b.get<&two::second>().host()) all.push_back(n);
    return all;
  };
  CHECK(seconds(false) == seconds(true));
}

TEST_CASE("prefetch is a bound that is never exceeded") {
  for (const std::size_t depth : {1, 2, 5}) {
    std::atomic<int> calls{0};
    mr::session run{mr::from(numbers(400)) | mr::map([&](int n) {
                      ++calls;
                      return row{n};
                    }) | mr::batch<&row::n>({.size = 10}) | mr::prefetch({.batches = depth}),
                    {.threads = 3, .notice = mr::quiet}};
    int batch = 0;
    for (auto& b : run) {
      if (batch < 3) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      // Delivered ones, and the allowed number of stored ones, one of which may be in use.
      CHECK(calls.load() <= static_cast<int>((static_cast<std::size_t>(++batch) + depth) * 10));
      CHECK(b.size() == 10);
    }
    CHECK(calls.load() == 400);
  }
}

TEST_CASE("drop_last drops the short batch before any work on it") {
  std::atomic<int> calls{0};
  const auto counting = mr::map([&](int n) {
    ++calls;
    return row{n};
  });
  CHECK(run_all(mr::from(numbers(25)) | counting | mr::batch<&row::n>({.size = 10})).size() == 20);
  CHECK(calls.exchange(0) == 20);
  CHECK(run_all(mr::from(numbers(25)) | counting | mr::batch<&row::n>({.size = 10, .drop_last = false})).size() == 25);
  CHECK(calls.load() == 25);
}

TEST_CASE("shuffle keeps every item, and a window of one keeps the order") {
  const auto in_order = run_all(mr::from(numbers(64)) | into_rows | in_twos);
  auto shuffled = run_all(mr::from(numbers(64), {.seed = 3}) | mr::shuffle({.window = 16}) | into_rows | in_twos);
  CHECK(shuffled != in_order);
  std::sort(shuffled.begin(), shuffled.end());
  CHECK(shuffled == in_order);
  CHECK(run_all(mr::from(numbers(64), {.seed = 3}) | mr::shuffle({.window = 1}) | into_rows | in_twos) == in_order);
}

// take: the number of items of each pass, how far it reads for them, and how such a run continues.

namespace {

const numbers_in_shards some_numbers{{20, 0, 1, 33, 17, 0, 5, 25}};   // 101
constexpr auto rows_of = [](std::size_t size) {
  return mr::batch<&numbered_row::number, &numbered_row::draw>({.size = size, .drop_last = false});
};

/// Parts of ten numbers, the fourth of which is broken; it counts opened parts.
struct broken_further_on {
  using item = int;
  std::shared_ptr<std::atomic<int>> opened = std::make_shared<std::atomic<int>>(0);

  struct reader {
    int at, end;
    std::optional<int> next() {
      if (at >= 30 && at < 40) throw mr::data_error("part 3 is broken", "Mend it");
      return at < end ? std::optional(at++) : std::nullopt;
    }
  };
  std::size_t shards() const { return 1'000; }
  reader open(std::size_t shard, std::uint64_t) const {
    ++*opened;
    return {static_cast<int>(shard) * 10, static_cast<int>(shard) * 10 + 10};
  }
};

}  // namespace

TEST_CASE("right after the source: resumed after any batch, shuffled or not") {
  for (const std::uint64_t count : {1U, 20U, 21U, 60U, 101U, 1'000U}) {
    CAPTURE(count);
    const auto flow = [&] { return mr::from(some_numbers) | mr::take(count) | mr::map(with_draw) | rows_of(6); };
    const replay_trace reference = check_every_cut(flow, quiet(0, 3));
    const std::size_t each = std::min<std::size_t>(count, 101);
    REQUIRE(reference.batches.size() == 3 * ((each + 5) / 6));
    std::int64_t expected = 0;
    for (const auto& batch : reference.batches)
      for (const auto& [number, draw] : batch) CHECK(number == expected++ % static_cast<std::int64_t>(each));
    check_chain(flow, quiet(0, 3), reference);
  }
  const auto shuffled = [] {
    return mr::from(some_numbers, {.seed = 3}) | mr::shuffle({.window = 30}) | mr::take(40) | mr::map(with_draw) |
           rows_of(6);
  };
  const replay_trace reference = check_every_cut(shuffled, quiet(0, 3));
  CHECK(reference.batches.size() == 3 * 7);
  CHECK(reference.batches[0] != reference.batches[7]);
  check_chain(shuffled, quiet(0, 3), reference);
}

TEST_CASE("further downstream in a flow") {
  const auto flow = [] {
    return mr::from(some_numbers, {.seed = 3}) | mr::shuffle({.window = 30}) |
           mr::filter([](int n) { return n % 3 == 0; }) | mr::take(20) | mr::map(with_draw) | rows_of(6);
  };
  const replay_trace reference = check_every_cut(flow, quiet(0, 3));
  REQUIRE(reference.batches.size() == 3 * 4);
  CHECK(reference.batches[3].size() == 20 - 3 * 6);
  for (const auto& batch : reference.batches)
    for (const auto& [number, draw] : batch) CHECK(number % 3 == 0);
  check_chain(flow, quiet(0, 3), reference);
}

TEST_CASE("after two shuffles the second one decides which items pass") {
  const auto take_limit_after = [](auto... first) {
    auto flow = (mr::from(some_numbers, {.seed = 3}) | ... | first) | mr::take(40) | mr::map(with_draw) | rows_of(6);
    return mr::detail::facts_of(flow).take;
  };
  CHECK(take_limit_after() == 40);
  CHECK(take_limit_after(mr::shuffle({.window = 30})) == 40);
  CHECK(take_limit_after(mr::shuffle({.window = 30}), mr::shuffle({.window = 50})) == mr::endless);
}

TEST_CASE("the parts after the last item are hardly opened, and their errors do not matter") {
  for (const int threads : {0, 1, 3})
    for (int round = 0; round < 20; ++round) {
      const broken_further_on source;
      const auto t = run_flow(mr::from(source) | mr::take(30) | mr::map(with_draw) | rows_of(10), quiet(threads, 2));
      REQUIRE(t.batches.size() == 6);
      CHECK(*source.opened <= 2 * (4 + 8));
    }
  CHECK_THROWS_WITH_AS(
      run_flow(mr::from(broken_further_on{}) | mr::take(31) | mr::map(with_draw) | rows_of(10), quiet(2)),
      doctest::Contains("part 3 is broken"), mr::data_error);
}

TEST_CASE("invalid uses of take are refused") {
  CHECK_THROWS_AS(mr::take(0), mr::setup_error);
  mr::session_options two = quiet(1);
  two.world = {.rank = 0, .size = 2};
  two.epoch_batches = 3;
  CHECK_THROWS_WITH_AS(run_flow(mr::from(some_numbers) | mr::take(60) | mr::map(with_draw) | rows_of(6), two),
                       doctest::Contains("take() does not support several ranks without an index: it counts from the "
                                         "beginning of each pass"),
                       mr::setup_error);
}
