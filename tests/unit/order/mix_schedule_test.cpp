// Weights that change with the position, and many sources.
#include "slow_mix.hpp"

#include <cmath>

namespace mr = millrace;
using namespace slow_mix;

TEST_CASE("weights that change with the position are kept at every position, and are frozen") {
  using weight = mr::source_weight;
  const std::vector<mr::detail::mix_source_spec> sources = {
      {.weight = weight::linear({{0, 0.9}, {20'000, 0.1}})},
      {.weight = weight::linear({{0, 0.1}, {20'000, 0.9}})},
      {.weight = weight::steps({{0, 0}, {7'777, 0.5}, {15'000, 0}})},
      {.weight = [](std::uint64_t p) { return p < 5'120 ? 0.25 : 0.001; }}};
  const mr::detail::mix_schedule schedule = schedule_of(sources);
  std::vector<double> expected(sources.size(), 0);
  std::vector<std::uint64_t> counts(sources.size(), 0);
  std::uint64_t digest = 0;
  double largest = 0;
  for (std::uint64_t p = 0; p < 40'000; ++p) {
    const auto phase = schedule.phase_at(p);
    const std::size_t source = phase->pattern.source_at(p - phase->begin);
    if (p == phase->begin) REQUIRE(phase->counts_before == counts);
    ++counts[source];
    digest = mr::detail::combine_keys(digest, source);
    double all = 0;
    for (const auto& s : sources) all += s.weight.at(p);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      expected[i] += sources[i].weight.at(p) / all;
      largest = std::max(largest, std::fabs(expected[i] - static_cast<double>(counts[i])));
    }
    if (p < 7'777 || p >= 15'100) REQUIRE(source != 2);
  }
  CHECK(largest < 1.6);
  CHECK(counts[2] > 2'300);
  CHECK(digest == 9896666872898342128U);
}

TEST_CASE("a schedule of many sources equals the slow distribution, from any position on") {
  mr::rng random({.seed = 4});
  for (const std::size_t count : {2U, 3U, 90U}) {
    std::vector<mr::detail::mix_source_spec> sources(count);
    for (auto& s : sources) s.weight = random_weight(random);
    sources[0].weight = mr::source_weight::steps({{0, 1}, {300, 0.001}, {600, 40}, {1'200, 0}, {2'000, 5}});
    const mr::detail::mix_schedule schedule = schedule_of(sources);
    const auto expected = slow_sources(sources, 6'000);
    for (int i = 0; i < (count == 90 ? 12 : 40); ++i) {
      const std::uint64_t at = random.below(6'000);
      const auto phase = random.chance(0.5) ? schedule.phase_at(at) : schedule_of(sources).phase_at(at);
      REQUIRE(phase->pattern.source_at(at - phase->begin) == expected[at]);
      const std::uint64_t begin = random.below(at + 1);
      const mr::world mine{.rank = random.below(3), .size = 3};
      std::vector<std::uint64_t> counts(count, 0);
      for (std::uint64_t p = begin; p < at; ++p)
        if (p % 3 == mine.rank) ++counts[expected[p]];
      REQUIRE(schedule.counts_of(mine, begin, at) == counts);
    }
  }
  // Far positions, forward and back over the stored positions.
  std::vector<mr::detail::mix_source_spec> many(6'000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i].weight = static_cast<double>(1 + i % 7);
  many[0].weight = mr::source_weight::linear({{500'000, 1}, {2'000'000, 900}});
  const mr::detail::mix_schedule walked_once = schedule_of(many);
  for (const std::uint64_t far : {2'100'000, 1'500'000, 1'600'000}) {
    const auto phase = walked_once.phase_at(far), same = schedule_of(many).phase_at(far);
    REQUIRE(phase->counts_before == same->counts_before);
    REQUIRE(phase->pattern.shares() == same->pattern.shares());
  }
}

TEST_CASE("many sources of constant weights that run out: exact shares, each sample once, from any position") {
  mr::rng random({.seed = 5});
  for (const mr::exhausted rule : {mr::exhausted::stop, mr::exhausted::reweight}) {
    options o{.on_exhausted = rule, .global_batch = 12, .drop_last = false};
    double all = 0;
    for (int i = 0; i < 70; ++i) {
      o.sources.push_back({.weight = 0.01 + random.uniform(), .counts = {3 + random.below(40)}});
      all += o.sources.back().weight.at(0);
    }
    const mr::detail::mix_plan plan(o);
    std::vector<std::uint64_t> counts(70, 0);
    bool is_over = false;
    for (std::uint64_t p = 0; p < plan.positions(); ++p) {
      const auto spot = plan.spot_of(0, p);
      REQUIRE(spot.number == counts[spot.source]++);
      for (std::size_t i = 0; i < 70 && !is_over; ++i)
        REQUIRE(std::fabs(static_cast<double>(p + 1) * o.sources[i].weight.at(0) / all -
                          static_cast<double>(counts[i])) < 1.6);
      if (!is_over && counts[spot.source] == samples_of(o.sources[spot.source])) {
        is_over = true;
        if (rule == mr::exhausted::stop) {
          REQUIRE(p + 1 == plan.positions());
          REQUIRE(plan.measure() == spot.source);
        }
      }
    }
    REQUIRE(is_over);
    for (std::size_t i = 0; i < 70 && rule == mr::exhausted::reweight; ++i)
      REQUIRE(counts[i] == samples_of(o.sources[i]));
    for (const std::uint64_t epoch : {0, 2}) {
      const order full = walked(plan, epoch, 0, 1);
      for (const std::size_t world_size : {1U, 2U, 3U, 4U, 6U}) {
        const std::uint64_t from = random.below(full.size() + 1);
        REQUIRE(walked(plan, epoch, from, world_size) ==
                order(full.begin() + static_cast<std::ptrdiff_t>(from), full.end()));
      }
    }
  }
}

TEST_CASE("invalid weights by position are refused, with their position") {
  using weight = mr::source_weight;
  CHECK(weight(0.7).fingerprint() == weight::steps({{0, 0.7}, {50, 0.7}}).fingerprint());
  CHECK(weight::linear({{0, 1}, {10, 2}}).fingerprint() != weight::steps({{0, 1}, {10, 2}}).fingerprint());
  CHECK(weight::linear({{10, 1}, {20, 3}}).at(15) == 2);
  CHECK(weight::linear({{10, 1}, {20, 3}}).at(5) == 1);
  CHECK(weight::steps({{10, 1}, {20, 3}}).at(20) == 3);
  CHECK_THROWS_WITH_AS(weight::steps({}), doctest::Contains("has no points"), mr::setup_error);
  CHECK_THROWS_WITH_AS(weight::steps({{9, 1}, {9, 2}}), doctest::Contains("got position 9 after 9"), mr::setup_error);
  CHECK_THROWS_WITH_AS(weight::linear({{0, 1}, {9, -1}}), doctest::Contains("invalid at position 9: got -1"),
                       mr::setup_error);
  const auto make = [](options o) {
    o.sources[0].counts = o.sources[1].counts = {400};
    return [o] { mr::detail::mix_plan plan(o); };
  };
  const auto repeat = mr::exhausted::repeat;
  const weight falls = [](std::uint64_t p) { return p < 256 ? 1. : -1.; }, ends = weight::steps({{0, 1}, {99, 0}});
  CHECK_THROWS_WITH_AS(make({.sources = {{.weight = ends}, {.weight = 1}}, .on_exhausted = mr::exhausted::stop})(),
                       doctest::Contains("but sources do not repeat"), mr::setup_error);
  CHECK_THROWS_WITH_AS(make({.sources = {{.weight = ends}, {.weight = ends}}, .on_exhausted = repeat})(),
                       doctest::Contains("the weights of the mix is invalid at position 99: got 0"), mr::setup_error);
  CHECK_THROWS_WITH_AS(make({.sources = {{.weight = 1}, {.weight = falls}}, .on_exhausted = repeat})(),
                       doctest::Contains("source 1 of the mix is invalid at position 256: got -1"), mr::setup_error);
}

TEST_CASE("a source that cannot complete a pass is an error at once, without a walk over 2^32 positions") {
  using weight = mr::source_weight;
  const auto epoch_of = [](const weight& tiny, const weight& other) {
    options o{.on_exhausted = mr::exhausted::repeat};
    for (int i = 0; i < 1'500; ++i) o.sources.push_back({.weight = i == 1'000 ? tiny : other, .counts = {20}});
    return [o] { return mr::detail::mix_plan(o).positions(); };   // a walk needs minutes
  };
  const auto* const message = "source 1000 of the mix does not complete a pass within 4294967296 positions";
  CHECK_THROWS_WITH_AS(epoch_of(1e-9, 1)(), doctest::Contains(message), mr::setup_error);
  CHECK_THROWS_WITH_AS(epoch_of(weight::steps({{0, 1e-9}, {3'000, 1e-8}}), 1)(), doctest::Contains(message),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(epoch_of(weight::linear({{0, 0.01}, {3'000, 0}}), 1)(), doctest::Contains(message),
                       mr::setup_error);
  // The weight grows later.
  const std::uint64_t longer = epoch_of(weight::steps({{0, 0}, {60'000, 10}}), 1)();
  CHECK(longer > 60'000);
  CHECK(longer < 70'000);
  CHECK(epoch_of(0.5, 1)() > 56'000);
}
