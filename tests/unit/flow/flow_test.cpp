#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/map.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <numeric>
#include <vector>

namespace mr = millrace;

namespace {

struct row {
  std::int32_t n;
};

std::vector<std::int32_t> run_all(auto flow) {
  std::vector<std::int32_t> all;
  for (auto& b : mr::session{std::move(flow), {.threads = 1, .notice = mr::quiet}})
    for (const auto n : b.template get<&row::n>().host()) all.push_back(n);
  return all;
}

}  // namespace

TEST_CASE("nothing runs before there is a session") {
  std::atomic<int> read{0}, mapped{0};
  const auto flow = mr::from([&]() -> std::optional<int> { return ++read <= 6 ? std::optional(0) : std::nullopt; }) |
                    mr::map([&](int n) { ++mapped; return row{n}; }) | mr::batch<&row::n>({.size = 2});
  CHECK(read.load() + mapped.load() == 0);
  run_all(flow);
  CHECK(read.load() == 7);
  CHECK(mapped.load() == 6);
}

TEST_CASE("a flow is a value: it can be kept, copied, continued in two ways and run again") {
  std::vector<int> numbers(12);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto start = mr::from(numbers) | mr::map([](int n) { return row{n}; });
  const auto pairs = start | mr::batch<&row::n>({.size = 2});
  const auto doubled = start | mr::map([](row r) { return row{2 * r.n}; }) | mr::batch<&row::n>({.size = 4});
  const auto first = run_all(pairs);
  CHECK(first == std::vector<std::int32_t>(numbers.begin(), numbers.end()));
  CHECK(run_all(pairs) == first);
  const auto twice = run_all(doubled);
  REQUIRE(twice.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) CHECK(twice[i] == 2 * first[i]);
}

TEST_CASE("sources, stages and flows are distinguished") {
  struct no_source {
    std::size_t shards() const { return 1; }
  };
  using numbers_flow = decltype(mr::from(std::vector<int>{}));
  using stage = decltype(mr::batch<&row::n>({.size = 2}));
  CHECK(mr::detail::flow_like<numbers_flow>);
  CHECK_FALSE(mr::detail::flow_like<stage>);
  CHECK(mr::detail::stage_like<stage>);
  CHECK_FALSE(mr::detail::stage_like<numbers_flow>);
  CHECK(mr::detail::source_like<mr::detail::range_source<std::vector<int>>>);
  CHECK_FALSE(mr::detail::source_like<no_source>);
}
