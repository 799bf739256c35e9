#include <millrace/base/error.hpp>
#include <millrace/base/random.hpp>
#include <millrace/order/mix_pattern.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mr = millrace;

namespace {

std::vector<std::uint64_t> random_shares(mr::rng& random, std::size_t sources, std::uint64_t most) {
  std::vector<std::uint64_t> shares;
  for (std::size_t i = 0; i < sources; ++i) shares.push_back(1 + random.below(most));
  return shares;
}

std::uint64_t sum(const std::vector<std::uint64_t>& shares) {
  return std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
}

/// The distance of a count from its share, over all prefixes and over all windows, in 1/period of a position.
struct distances {
  std::int64_t prefix = 0, window = 0;
};
distances slow_distances(const mr::detail::mix_pattern& pattern) {
  distances far;
  const auto period = static_cast<std::int64_t>(pattern.period());
  for (std::size_t source = 0; source < pattern.shares().size(); ++source) {
    const auto share = static_cast<std::int64_t>(pattern.shares()[source]);
    std::vector<std::int64_t> lead{0};
    for (std::uint64_t p = 0; p < 2 * pattern.period(); ++p)
      lead.push_back(lead.back() + (pattern.source_at(p) == source ? period : 0) - share);
    for (const std::int64_t l : lead) far.prefix = std::max(far.prefix, l < 0 ? -l : l);
    const auto [low, high] = std::minmax_element(lead.begin(), lead.end());
    far.window = std::max(far.window, *high - *low);   // of the window between the two
  }
  return far;
}

/// One period, the slow way: the earliest deadline among all sources that are due, at each position.
std::vector<std::size_t> slow_period(const std::vector<std::uint64_t>& shares) {
  std::vector<std::int64_t> lags(shares.size(), 0);
  std::vector<std::size_t> all;
  const auto unit = static_cast<std::int64_t>(sum(shares));
  const auto scale = 2 * static_cast<std::int64_t>(shares.size() - std::count(shares.begin(), shares.end(), 0)) - 2;
  while (all.size() < sum(shares)) {
    std::size_t first = shares.size();
    std::int64_t first_slack = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const auto share = static_cast<std::int64_t>(shares[i]);
      lags[i] += share;
      if (share == 0 || scale * lags[i] < unit) continue;
      const std::int64_t slack = unit * (scale - 1) - scale * lags[i];
      if (first < shares.size() && slack * static_cast<std::int64_t>(shares[first]) >= first_slack * share) continue;
      first = i;
      first_slack = slack;
    }
    lags[first] -= unit;
    all.push_back(first);
  }
  return all;
}

/// The longest sequence, up to `most`, in which every window is within 1 of the shares.
std::size_t longest_within_one(const std::vector<std::int64_t>& shares, std::size_t most) {
  struct state {
    std::vector<std::int64_t> lead, low, high;
  };
  const std::int64_t all = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  std::size_t longest = 0;
  const auto extend = [&](const auto& self, const state& s, std::size_t length) -> void {
    longest = std::max(longest, length);
    for (std::size_t next = 0; next < shares.size() && longest < most; ++next) {
      state then = s;
      bool good = true;
      for (std::size_t i = 0; i < shares.size(); ++i) {
        then.lead[i] += (i == next ? all : 0) - shares[i];
        then.low[i] = std::min(then.low[i], then.lead[i]);
        then.high[i] = std::max(then.high[i], then.lead[i]);
        good = good && then.high[i] - then.low[i] <= all;
      }
      if (good) self(self, then, length + 1);
    }
  };
  const std::vector<std::int64_t> zero(shares.size(), 0);
  extend(extend, {zero, zero, zero}, 0);
  return longest;
}

}  // namespace

TEST_CASE("every interval of positions contains the shares, as closely as possible") {
  mr::rng random({.seed = 1});
  for (int round = 0; round < 300; ++round) {
    const std::size_t sources = 1 + random.below(round % 3 == 0 ? 12 : 4);
    const mr::detail::mix_pattern pattern(random_shares(random, sources, round % 2 == 0 ? 10 : 300));
    const auto period = static_cast<std::int64_t>(pattern.period()), k = static_cast<std::int64_t>(sources);
    const distances far = slow_distances(pattern);
    CAPTURE(sources);
    if (sources == 1) {
      CHECK(far.window == 0);
    } else {
      CHECK((2 * k - 2) * far.prefix <= (2 * k - 3) * period);
      CHECK((k - 1) * far.window <= (2 * k - 3) * period);   // two sources: 1
    }
  }
}

TEST_CASE("a period equals the slow one, with few and with many sources") {
  mr::rng random({.seed = 5});
  for (int round = 0; round < 300; ++round) {
    auto shares = random_shares(random, 2 + random.below(round % 30 == 0 ? 200 : 6), round % 2 == 0 ? 5 : 70);
    for (std::size_t i = 2; i < shares.size(); ++i)
      if (random.chance(0.2)) shares[i] = 0;
    const mr::detail::mix_pattern pattern(shares);
    const auto expected = slow_period(pattern.shares());
    REQUIRE(pattern.period() == expected.size());
    for (std::size_t p = 0; p < expected.size(); ++p) REQUIRE(pattern.source_at(p) == expected[p]);
  }
}

TEST_CASE("a period of the largest shares equals the slow one") {
  // The deadlines of such sources differ by as little as 2^-34.
  for (const std::vector<std::uint64_t>& shares :
       {std::vector<std::uint64_t>{131'071, 131'073}, {131'069, 131'071, 4}, {87'380, 87'381, 87'383}}) {
    const mr::detail::mix_pattern pattern(shares);
    const auto expected = slow_period(shares);
    REQUIRE(pattern.period() == expected.size());
    bool same = true;
    for (std::size_t p = 0; p < expected.size(); ++p) same &= pattern.source_at(p) == expected[p];
    CHECK(same);
  }
}

TEST_CASE("with three sources not every window can be within 1: no sequence achieves it") {
  CHECK(longest_within_one({7, 3, 1}, 100) == 9);
  CHECK(longest_within_one({7, 3}, 100) == 100);
}

TEST_CASE("a source of share 0 is never met, and shares are divided by their common divisor") {
  const mr::detail::mix_pattern pattern({4, 0, 2});
  CHECK(pattern.period() == 3);
  CHECK(pattern.counts_before(300) == std::vector<std::uint64_t>{200, 0, 100});
  CHECK(mr::detail::mix_pattern({0, 5}).source_at(12) == 1);
}

TEST_CASE("counts and positions equal those of a walk") {
  mr::rng random({.seed = 2});
  for (int round = 0; round < 200; ++round) {
    const mr::detail::mix_pattern pattern(random_shares(random, 1 + random.below(5), 20));
    std::vector<std::uint64_t> counts(pattern.shares().size(), 0);
    for (std::uint64_t p = 0; p < 3 * pattern.period(); ++p) {
      REQUIRE(pattern.counts_before(p) == counts);
      const std::size_t source = pattern.source_at(p);
      REQUIRE(pattern.positions_of(counts)[source] == p);
      ++counts[source];
    }
    for (int question = 0; question < 20; ++question) {
      const std::uint64_t begin = random.below(200), end = begin + random.below(500), stride = 1 + random.below(12);
      std::vector<std::uint64_t> walked(pattern.shares().size(), 0);
      for (std::uint64_t p = begin; p < end; p += stride) ++walked[pattern.source_at(p)];
      REQUIRE(pattern.counts(begin, end, stride) == walked);
    }
  }
}

TEST_CASE("weights become the smallest exact integer shares") {
  using shares = std::vector<std::uint64_t>;
  CHECK(mr::detail::mix_pattern::shares_of({0.7, 0.3}) == shares{7, 3});
  CHECK(mr::detail::mix_pattern::shares_of({1, 1, 1}) == shares{1, 1, 1});
  CHECK(mr::detail::mix_pattern::shares_of({0.1, 0.2, 0.7}) == shares{1, 2, 7});
  CHECK(mr::detail::mix_pattern::shares_of({1.0 / 3, 2.0 / 3}) == shares{1, 2});
  CHECK(mr::detail::mix_pattern::shares_of({30'000, 20'000}) == shares{3, 2});
  CHECK(mr::detail::mix_pattern::shares_of(std::vector{42.0}) == shares{1});
  // 1,331,167 is too long a period.
  const shares rounded = mr::detail::mix_pattern::shares_of({1'281'167, 50'000});
  CHECK(sum(rounded) == mr::detail::mix_pattern::longest_period);
  CHECK(rounded[1] == 2'462);   // 65,536 * 50,000 / 1,331,167 = 2,461.6
}

TEST_CASE("rounded shares are less than one from their weights") {
  mr::rng random({.seed = 3});
  for (int round = 0; round < 20; ++round) {
    std::vector<double> weights;
    for (std::size_t i = 2 + random.below(6); i > 0; --i) weights.push_back(0.01 + random.uniform());
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    const auto shares = mr::detail::mix_pattern::shares_of(weights);
    REQUIRE(sum(shares) <= mr::detail::mix_pattern::longest_period);
    for (std::size_t i = 0; i < weights.size(); ++i)
      CHECK(std::fabs(static_cast<double>(shares[i]) - static_cast<double>(sum(shares)) * weights[i] / all) < 1);
  }
}

TEST_CASE("weights without valid shares are refused") {
  const auto shares_of = [](std::vector<double> weights) { return mr::detail::mix_pattern::shares_of(weights); };
  CHECK_THROWS_WITH_AS(shares_of({}), doctest::Contains("a mix has no sources"), mr::setup_error);
  CHECK_THROWS_WITH_AS(shares_of({1, 0}), doctest::Contains("an invalid weight: got 0.0"), mr::setup_error);
  CHECK_THROWS_WITH_AS(shares_of({1, -1}), doctest::Contains("an invalid weight: got -1.0"), mr::setup_error);
  CHECK_THROWS_AS(shares_of({1, std::numeric_limits<double>::infinity()}), mr::setup_error);
  CHECK_THROWS_AS(shares_of({1, std::numeric_limits<double>::quiet_NaN()}), mr::setup_error);
  CHECK_THROWS_WITH_AS(shares_of({1, 1e-6}), doctest::Contains("less than 1 / 65536"), mr::setup_error);
}
