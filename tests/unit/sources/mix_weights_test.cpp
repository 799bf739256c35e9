// Weights that are functions of the position: exact over workers, ranks and resumes.
#include "mixed_sets.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace mr = millrace;
using namespace mixed_sets;

TEST_CASE("weights by position: every number of workers and ranks, and every resume, delivers the same") {
  using weight = mr::source_weight;
  const data_sets sets;
  const weight weights[] = {weight::steps({{0, 0}, {700, 3}, {2'000, 0.1}}), weight::linear({{100, 0}, {2'500, 6}}),
                            [](std::uint64_t p) { return p / 500 % 2 == 0 ? 0.0 : 1.5; }};
  const std::uint64_t digests[] = {1797853311180130035U, 2603242542374082037U, 11374679267689964277U};
  mr::rng random({.seed = 9});
  for (std::size_t kind = 0; kind < 3; ++kind) {
    CAPTURE(kind);
    const run_options base{.epochs = 2, .weight = weights[kind], .epoch_batches = 60};
    const auto with = [&](auto change) {
      run_options o = base;
      change(o);
      return o;
    };
    const delivered full = run(sets, base);
    REQUIRE(full.batches.size() == 120);
    CHECK(full.stats.digest == digests[kind]);
    for (const int n : {0, 1, 4}) CHECK(run(sets, with([n](auto& o) { o.threads = n; })).batches == full.batches);
    for (const std::size_t n : {2, 3, 4, 6}) CHECK(run_all_ranks(sets, base, n) == full.batches);
    for (int i = 0; i < 50; ++i) {
      const std::size_t cut = random.below(119), ranks = random.chance(0.2) ? 3 : 1;
      const auto rest = run_all_ranks(sets, with([&](auto& o) {
                                        o.resume = full.positions[cut];
                                        o.max_batches = 1 + random.below(4);
                                        o.threads = static_cast<int>(random.below(3));
                                      }), ranks);
      REQUIRE(std::equal(rest.begin(), rest.end(), full.batches.begin() + static_cast<long>(cut) + 1));
    }
    // The share of the second source follows its weight.
    double expected = 0;
    std::uint64_t second = 0;
    for (std::size_t b = 0; b < full.batches.size(); ++b)
      for (std::size_t i = 0; i < global_batch; ++i) {
        const double own = weights[kind].at(b * global_batch + i);
        expected += own / (0.7 + own);
        second += set_of(full.batches[b][i].first) == 1;
        if (kind < 2) CHECK(std::fabs(expected - static_cast<double>(second)) < 2);   // the function: within a block
      }
    CHECK(full.stats.sources[1].samples == second);
    CHECK(full.description.find("mix of 3 sources, with weights by position: ") != std::string::npos);
    const auto other = with([&](auto& o) {
      o.weight = weight::steps({{0, 0}, {701, 3}, {2'000, 0.1}});
      o.resume = full.positions[4];
    });
    CHECK_THROWS_WITH_AS(run(sets, other), doctest::Contains("the mix has other settings (weights"), mr::setup_error);
  }
  CHECK_THROWS_WITH_AS(run(sets, {.on_exhausted = mr::exhausted::stop, .weight = weights[0]}),
                       doctest::Contains("but sources do not repeat"), mr::setup_error);
}
