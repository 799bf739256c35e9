// Several indexed data sets by weight: each in its own order, in exact shares, and resumed from any batch.
#include "mixed_sets.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <set>

namespace mr = millrace;
using namespace mixed_sets;

namespace {

constexpr mr::exhausted all_rules[] = {mr::exhausted::stop, mr::exhausted::repeat, mr::exhausted::reweight};

}  // namespace

TEST_CASE("every batch contains the sources in their shares, and each source delivers each sample once a pass") {
  const data_sets sets;
  const delivered d = run(sets, {});
  REQUIRE(d.batches.size() == 3 * 9);   // 130 at 0.6 are exhausted at 216
  std::array<std::map<std::int32_t, int>, 3> occurrences;
  std::array<std::size_t, 3> counts{};
  const double shares[] = {0.6, 0.3, 0.1};
  for (const rows& batch : d.batches) {
    std::array<std::size_t, 3> here{};
    for (const auto& [label, draw] : batch) {
      ++here[set_of(label)];
      ++occurrences[set_of(label)][label];
    }
    for (std::size_t i = 0; i < 3; ++i) {
      counts[i] += here[i];
      CHECK(std::fabs(static_cast<double>(here[i]) - shares[i] * 24) <= 1.5);
    }
  }
  const std::size_t samples[] = {130, 61, 20};
  for (std::size_t i = 0; i < 3; ++i) {
    const int passes = static_cast<int>(counts[i] / samples[i]);
    CHECK(occurrences[i].size() == samples[i]);
    for (const auto& [label, times] : occurrences[i]) CHECK((times == passes || times == passes + 1));
    CHECK(d.stats.sources[i].samples == counts[i]);
  }
  CHECK(d.statistics.find(mr::stage_kind::read)->bytes > 3 * 211 * 1'024);   // a header and a payload of each
  CHECK(d.statistics.find(mr::stage_kind::unpack));   // work during reads does not count as waiting
  CHECK(d.stats.sources[0].name == "many");
  CHECK(d.stats.sources[2].name == "source 2");
}

TEST_CASE("a mix is the same for every number of workers and of ranks, whatever happens when a source is exhausted") {
  const data_sets sets;
  for (const mr::exhausted rule : all_rules) {
    const auto expected = run(sets, {.on_exhausted = rule, .threads = 0}).batches;
    for (const int n : {1, 2, 4}) CHECK(run(sets, {.on_exhausted = rule, .threads = n}).batches == expected);
    for (const std::size_t n : {2, 3, 8, 24}) CHECK(run_all_ranks(sets, {.on_exhausted = rule}, n) == expected);
    CHECK(run(sets, {.seed = 8, .on_exhausted = rule}).batches != expected);
    CHECK(run(sets, {.on_exhausted = rule, .own_seed = 1}).batches != expected);
  }
}

TEST_CASE("resumed after any batch of three epochs, the rest of a mix is the same as without the interruption") {
  const data_sets sets;
  for (const mr::exhausted rule : all_rules) {
    const delivered full = run(sets, {.on_exhausted = rule});
    for (std::size_t cut = 0; cut + 1 < full.batches.size(); cut += stride(5)) {
      CAPTURE(cut);
      const delivered rest = run(sets, {.on_exhausted = rule, .resume = full.positions[cut]});
      REQUIRE(rest.batches.size() == full.batches.size() - cut - 1);
      REQUIRE(std::equal(rest.batches.begin(), rest.batches.end(), full.batches.begin() + static_cast<long>(cut) + 1));
      REQUIRE(std::equal(rest.positions.begin(), rest.positions.end(),
                         full.positions.begin() + static_cast<long>(cut) + 1));
      REQUIRE(rest.steps.front() == cut + 1);
    }
  }
}

TEST_CASE("a mix resumed several times, with other ranks and workers each time") {
  const data_sets sets;
  for (const mr::exhausted rule : all_rules) {
    const auto full = run(sets, {.on_exhausted = rule}).batches;
    std::vector<rows> pieced;
    std::string position;
    const std::size_t worlds[] = {4, 1, 12, 3, 2, 8};
    for (std::size_t turn = 0; pieced.size() < full.size(); ++turn) {
      const std::size_t ranks = worlds[turn % 6];
      const run_options o{.on_exhausted = rule,
                          .threads = static_cast<int>(turn % 4),
                          .resume = position,
                          .max_batches = 1 + turn % 5};
      const auto some = run_all_ranks(sets, o, ranks);
      pieced.insert(pieced.end(), some.begin(), some.end());
      run_options last = o;
      last.world = {.rank = ranks - 1, .size = ranks};
      position = run(sets, last).positions.back();
    }
    CHECK(pieced == full);
  }
}

TEST_CASE("a resume point of another mix is refused by name") {
  const data_sets sets;
  const std::string position = run(sets, {.max_batches = 3}).positions.back();
  CHECK(position.size() < 300);
  const auto resumed = [&](run_options o) {
    o.resume = position;
    return [&sets, o] { run(sets, o); };
  };
  const auto rule = doctest::Contains("the mix has other settings (weights");
  CHECK_THROWS_WITH_AS(resumed({.weight = 0.4})(), rule, mr::setup_error);
  CHECK_THROWS_WITH_AS(resumed({.on_exhausted = mr::exhausted::stop})(), rule, mr::setup_error);
  CHECK_THROWS_WITH_AS(resumed({.own_seed = 1})(), rule, mr::setup_error);
  CHECK_THROWS_WITH_AS(resumed({.window = 61})(), rule, mr::setup_error);
  CHECK_THROWS_WITH_AS(resumed({.seed = 8})(), doctest::Contains("the seed was 7 and is 8"), mr::setup_error);
  mr::shard_writer more({.pattern = sets.folders[1] / "z-%d.tar"});
  more.write("another", {{"cls", "1"}});
  more.close();
  CHECK_THROWS_WITH_AS(resumed({})(), doctest::Contains("the mix has other sources"), mr::setup_error);
}

TEST_CASE("the samples of each source are counted per rank, after a resume too") {
  const data_sets sets;
  for (const mr::exhausted rule : all_rules) {
    const run_options o{.on_exhausted = rule, .world = {.rank = 1, .size = 3}};
    const std::string middle = run(sets, {.on_exhausted = rule, .max_batches = 4}).positions.back();
    for (const std::string& resume : {std::string(), middle}) {
      run_options now = o;
      now.resume = resume;
      const delivered d = run(sets, now);
      std::array<std::uint64_t, 3> counts{};
      for (const rows& batch : d.batches)
        for (const auto& [label, draw] : batch) ++counts[set_of(label)];
      REQUIRE(d.stats.sources.size() == 3);
      for (std::size_t i = 0; i < 3; ++i) CHECK(d.stats.sources[i].samples == counts[i]);
    }
  }
}

TEST_CASE("epochs of a mix that cycles may be of any length, and a sample draws other numbers in each pass") {
  const data_sets sets;
  const delivered short_ones = run(sets, {.epochs = 9, .epoch_batches = 3}), long_ones = run(sets, {.epochs = 3});
  CHECK(short_ones.batches == long_ones.batches);
  CHECK(short_ones.epochs.back() == 8);
  const delivered one = run(sets, {.epochs = 1, .epoch_batches = 27});
  CHECK(one.batches == long_ones.batches);
  const delivered rest = run(sets, {.epochs = 9, .resume = short_ones.positions[10], .epoch_batches = 3});
  CHECK(std::equal(rest.batches.begin(), rest.batches.end(), short_ones.batches.begin() + 11,
                  short_ones.batches.end()));
  std::map<std::int32_t, std::set<double>> draws;
  std::map<std::int32_t, std::size_t> times;
  for (const rows& batch : one.batches)
    for (const auto& [label, draw] : batch) {
      draws[label].insert(draw);
      ++times[label];
    }
  for (const auto& [label, values] : draws) CHECK(values.size() == times[label]);
  CHECK_THROWS_WITH_AS(run(sets, {.on_exhausted = mr::exhausted::stop, .epoch_batches = 3}),
                       doctest::Contains("exhausted::repeat"), mr::setup_error);
}

TEST_CASE("the digests of a mix's ranks add up, over a resume too") {
  const data_sets sets;
  for (const mr::exhausted rule : all_rules) {
    const delivered full = run(sets, {.on_exhausted = rule});
    std::uint64_t sum = 0;
    for (std::size_t r = 0; r < 4; ++r) {
      const run_options mine{.on_exhausted = rule, .world = {.rank = r, .size = 4}, .resume = full.positions[5]};
      sum += run(sets, mine).stats.digest;
    }
    CHECK(sum == full.stats.digest);
    CHECK(full.stats.digest != 0);
  }
}

TEST_CASE("a mix reports the end of an epoch") {
  const data_sets sets;
  CHECK(run(sets, {.on_exhausted = mr::exhausted::stop}).description.find(
            "mix 6 : 3 : 1 of 3 sources: source 2 runs out first and ends the epoch (8 batches)") != std::string::npos);
  CHECK(run(sets, {}).description.find("an epoch is a pass of many (9 batches)") != std::string::npos);
  const std::string all = run(sets, {.on_exhausted = mr::exhausted::reweight}).description;
  CHECK(all.find("the others continue when one runs out, many last (8 batches)") != std::string::npos);
}

TEST_CASE("explain names the source of a position in a mix") {
  const data_sets sets;
  const auto all = run(sets, {}).batches;
  mr::session session{flow(sets, {}), quiet(1, 3)};
  std::set<std::string> sources;
  for (const std::uint64_t epoch : {0, 2})
    for (std::uint64_t position = 0; position < 216; position += 7) {
      const mr::error_location location = session.locate(epoch, position);
      const std::int32_t label = all[9 * epoch + position / global_batch][position % global_batch].first;
      CHECK(location.key == "k" + std::to_string(label));
      CHECK(location.shard.starts_with(sets.paths[set_of(label)]));
      CHECK(location.position == position);
      CHECK(location.stage ==
            (set_of(label) == 0 ? "many" : "source " + std::to_string(set_of(label))) + " of the mix");
      sources.insert(location.stage);
    }
  CHECK(sources.size() == 3);
  CHECK_THROWS_WITH_AS(session.locate(0, 216), doctest::Contains("position 216 is out of range"), mr::setup_error);
}

TEST_CASE("sources with separate maps end in one item, and each gets its own maps") {
  const data_sets sets;
  struct raw {
    std::int32_t label;
  };
  auto mixed =
      mr::mix({.seed = 7},
              mr::weighted{mr::shards(sets.paths[0]) |
                           mr::map([](const mr::record& r) { return raw{r["cls"].as<std::int32_t>()}; }) |
                           mr::map([](raw r, mr::rng& random) { return example{r.label, 2 + random.uniform()}; })},
              mr::weighted{mr::shards(sets.paths[1]) | mr::shuffle({.window = 10}) |
                           mr::map([](const mr::record& r) { return example{r["cls"].as<std::int32_t>(), -1}; },
                                   {.blocking = true, .threads = 2})}) |
      mr::map([](example e) { return e; }) | mr::batch<&example::label, &example::draw>({.size = 10});
  const auto once = [&](int threads) {
    mr::session session{mixed, quiet(threads)};
    rows all;
    for (auto& b : session) {
      auto [labels, draw] = b.columns();
      for (std::size_t i = 0; i < b.size(); ++i) all.emplace_back(labels.host()[i], draw.host()[i]);
    }
    return all;
  };
  const rows all = once(2);
  REQUIRE(all.size() == 120);   // 61 of each, by tens
  std::set<double> draws;
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(set_of(all[i].first) == i % 2);
    if (i % 2 == 0) CHECK(all[i].first == static_cast<int>(i / 2));   // not shuffled: as listed
    CHECK((i % 2 == 0 ? all[i].second >= 2 : all[i].second == -1));
    if (i % 2 == 0) draws.insert(all[i].second);
  }
  CHECK(draws.size() == 60);
  CHECK(once(0) == all);
}

TEST_CASE("an item of a source without a map is a record that knows its source") {
  const data_sets sets;
  auto mixed = mr::mix({}, mr::weighted{mr::shards(sets.paths[0]), 2},
                       mr::weighted{mr::shards(sets.paths[1]), 1}) |
               mr::map([](const mr::detail::mixed_record& r) {
                 return example{r["cls"].as<std::int32_t>(), static_cast<double>(r.source)};
               }) |
               mr::batch<&example::label, &example::draw>({.size = 9});
  mr::session session{std::move(mixed), quiet(1)};
  for (auto& b : session)
    for (std::size_t i = 0; i < b.size(); ++i)
      CHECK(set_of(b.get<&example::label>().host()[i]) == static_cast<std::size_t>(b.get<&example::draw>().host()[i]));
}

TEST_CASE("a bad sample of a mix is the error of its batch, with shard and key") {
  const data_sets sets;
  const auto expected = run(sets, {.threads = 0}).batches;
  const std::int32_t bad = expected[5][7].first;
  for (const int threads : {0, 2}) {
    auto mixed = mr::mix({.seed = 7, .on_exhausted = mr::exhausted::repeat},
                         mr::weighted{mr::shards(sets.paths[0]) | mr::shuffle({.window = 60}), 0.6},
                         mr::weighted{mr::shards(sets.paths[1]) | mr::shuffle({.window = 25}), 0.3},
                         mr::weighted{mr::shards(sets.paths[2]) | mr::shuffle({.window = 9}), 0.1}) |
                 mr::map([bad](const mr::record& r) {
                   const auto label = r["cls"].as<std::int32_t>();
                   if (label == bad) throw mr::data_error("bad", "Mend it");
                   return example{label, 0};
                 }) |
                 mr::batch<&example::label>({.size = global_batch});
    std::size_t batches = 0;
    mr::session session{std::move(mixed), quiet(threads)};
    try {
      for (auto& b : session) batches += b.size() == global_batch;
      FAIL("no error");
    } catch (const mr::data_error& e) {
      CHECK(e.where().key == "k" + std::to_string(bad));
      CHECK(e.where().shard.starts_with(sets.paths[set_of(bad)]));
    }
    CHECK(batches <= 5);
  }
}

TEST_CASE("an invalid mix is refused at the start") {
  const data_sets sets;
  const auto start = [](auto mixed) {
    mr::session session{std::move(mixed) | mr::map(prepare) | mr::batch<&example::label>({.size = 10}), quiet(1)};
  };
  const auto source = [&](int set) { return mr::shards(sets.paths[set], {.notice = mr::quiet}); };
  CHECK_THROWS_WITH_AS(mr::mix({}, mr::weighted{source(0)}, mr::weighted{source(1), 0}),
                       doctest::Contains("an invalid weight: got 0.0"), mr::setup_error);
  CHECK_THROWS_WITH_AS(start(mr::mix({}, mr::weighted{source(0)}) | mr::shuffle({.window = 5})),
                       doctest::Contains("a shuffle after mix()"), mr::setup_error);
  std::ofstream(sets.folders[2] / "cut.tar", std::ios::binary) << std::string(300, 'x');
  CHECK_THROWS_WITH_AS(start(mr::mix({}, mr::weighted{source(2)})), doctest::Contains("cut.tar"), mr::data_error);
}

// Weights that are functions of the position: exact over workers, ranks and resumes.
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
                       doctest::Contains("but its sources do not repeat"), mr::setup_error);
}
