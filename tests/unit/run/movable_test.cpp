#include "quiet_sessions.hpp"

#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/expand.hpp>

#include <doctest/doctest.h>

#include <memory>

namespace mr = millrace;

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
