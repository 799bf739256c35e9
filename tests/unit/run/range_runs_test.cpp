// Runs over ranges: their order, ranks and resume points are those of a planned run, without an index.
#include "quiet_sessions.hpp"

#include <millrace/text.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <list>
#include <string>

namespace mr = millrace;

namespace {

struct row {
  std::int32_t n;
};

struct delivered {
  std::vector<int> numbers{};
  std::vector<std::string> points{}, keys{};
};
template <class Flow>
delivered deliver(const Flow& flow, const mr::session_options& o) {
  delivered d;
  mr::session run{flow, o};
  for (auto& b : run) {
    for (const std::int32_t n : b.template get<&row::n>().host()) d.numbers.push_back(n);
    for (const auto& key : b.keys()) d.keys.emplace_back(key);
    d.points.push_back(mr::to_text(b.position()));
  }
  return d;
}
const auto to_row = mr::map([](int n) { return row{n}; });

}  // namespace

TEST_CASE("from(range): all ranks together have each element once a pass, in one order for any world size") {
  const std::vector<int> source = numbers(130);
  for (const std::size_t window : {std::size_t{1}, std::size_t{1'000}}) {
    const auto flow = [&](std::size_t rows) {
      return mr::from(source, {.seed = 4}) | mr::shuffle({.window = window}) | to_row |
             mr::batch<&row::n>({.size = rows, .drop_last = false, .keys = true});
    };
    const delivered one = deliver(flow(12), quiet(2, 2));
    REQUIRE(one.numbers.size() == 260);
    for (const std::size_t pass : {0U, 1U}) {
      std::vector<int> all(one.numbers.begin() + static_cast<std::ptrdiff_t>(130 * pass),
                           one.numbers.begin() + static_cast<std::ptrdiff_t>(130 * (pass + 1)));
      CHECK((all == source) == (window == 1));
      std::sort(all.begin(), all.end());
      CHECK(all == source);
    }
    for (std::size_t i = 0; i < 260; ++i) CHECK(one.keys[i] == std::to_string(one.numbers[i]));
    for (const std::size_t ranks : {2U, 3U}) {
      std::vector<delivered> shares;
      for (std::size_t r = 0; r < ranks; ++r) {
        mr::session_options o = quiet(2, 2);
        o.world = {.rank = r, .size = ranks};
        shares.push_back(deliver(flow(12 / ranks), o));
      }
      std::vector<std::size_t> at(ranks);
      std::vector<int> together;
      for (int n = 0; n < 2; ++n)
        for (std::size_t p = 0; p < 130; ++p) together.push_back(shares[p % ranks].numbers.at(at[p % ranks]++));
      CHECK(together == one.numbers);
    }
    mr::session_options o = quiet(2, 2);
    o.resume = one.points[14];
    const delivered rest = deliver(flow(12), o);
    CHECK(rest.numbers == std::vector<int>(one.numbers.end() - static_cast<std::ptrdiff_t>(rest.numbers.size()),
                                           one.numbers.end()));
    CHECK(rest.numbers.size() == 260 - 130 - 4 * 12);
    // A range of another size is another data set.
    const std::vector<int> longer = numbers(131);
    CHECK_THROWS_WITH_AS(deliver(mr::from(longer, {.seed = 4}) | mr::shuffle({.window = window}) | to_row |
                                     mr::batch<&row::n>({.size = 12, .drop_last = false, .keys = true}), o),
                         doctest::Contains("the data set was"), mr::setup_error);
  }
}

TEST_CASE("from(range): which ranges are planned, and which stay streams") {
  std::vector<int> vector = numbers(20);
  std::deque<int> deque(vector.begin(), vector.end());
  std::list<int> list(vector.begin(), vector.end());
  const auto rows = [](auto flow) { return std::move(flow) | to_row | mr::batch<&row::n>({.size = 5, .keys = true}); };
  static_assert(mr::detail::may_be_planned<decltype(rows(mr::from(vector)))>());
  static_assert(mr::detail::may_be_planned<decltype(rows(mr::from(deque)))>());
  static_assert(mr::detail::may_be_planned<decltype(rows(mr::from(std::vector<int>{1})))>());
  static_assert(!mr::detail::may_be_planned<decltype(rows(mr::from(list)))>());
  static_assert(!mr::detail::may_be_planned<decltype(rows(mr::from(vector) | mr::take(3)))>());
  static_assert(!mr::detail::may_be_planned<decltype(rows(mr::from([] { return std::optional<int>(1); })))>());
  CHECK(deliver(rows(mr::from(vector)), quiet(2)).numbers == vector);
  CHECK(deliver(rows(mr::from(deque)), quiet(2)).numbers == vector);
  CHECK(deliver(rows(mr::from(list)), quiet(2)).numbers == vector);
  CHECK(deliver(rows(mr::from(numbers(20))), quiet(2)).numbers == vector);
  CHECK_THROWS_WITH_AS(deliver(rows(mr::from(std::vector<int>{})), quiet(2)),
                       doctest::Contains("the range of from() is empty"), mr::setup_error);
}

TEST_CASE("from(range): a resume point of a version in which ranges were streams is refused by that version") {
  mr::session_options o = quiet(2, 2);
  o.lanes = 1;
  const std::vector<int> source = numbers(100);
  const std::list<int> stream(source.begin(), source.end());
  const auto rows = [](auto flow) { return std::move(flow) | to_row | mr::batch<&row::n>({.size = 10, .keys = true}); };
  o.resume = deliver(rows(mr::from(stream)), o).points[3];
  CHECK(deliver(rows(mr::from(stream)), o).numbers.size() == 160);
  CHECK_THROWS_WITH_AS(deliver(rows(mr::from(source)), o), doctest::Contains("the order's version was"),
                       mr::setup_error);
}
