// take: the number of items of each pass, how far it reads for them, and how such a run continues.
#include "../read/run/replay_flows.hpp"

#include <millrace/stages/expand.hpp>
#include <millrace/stages/take.hpp>

#include <atomic>
#include <memory>

namespace mr = millrace;

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
                       doctest::Contains("take() counts from the beginning of each pass"), mr::setup_error);
}
