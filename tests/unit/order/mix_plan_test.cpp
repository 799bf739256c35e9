#include "slow_mix.hpp"

#include <cmath>

namespace mr = millrace;
using namespace slow_mix;

namespace {

/// All epochs up to `epochs`, the slow way: the source of each turn, and its next sample.
std::vector<order> slow_epochs(const options& o, std::uint64_t epochs) {
  const bool scheduled = changes(o);
  const std::vector<std::uint64_t> shares =
      scheduled ? std::vector<std::uint64_t>{1} : mr::detail::mix_pattern::shares_of(o.sources);
  const auto sources = scheduled ? slow_sources(o.sources, 20'000) : std::vector<std::size_t>{};
  std::vector<order> all;
  std::vector<std::uint64_t> delivered(o.sources.size(), 0);
  std::uint64_t turn = 0;
  mr::detail::mix_pattern pattern(shares);
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    order& now = all.emplace_back();
    const auto take = [&] {
      const std::size_t source = scheduled ? sources.at(turn) : pattern.source_at(turn);
      ++turn;
      now.push_back(alone(o, source, delivered[source]++));
      return source;
    };
    if (o.on_exhausted == mr::exhausted::repeat) {
      std::uint64_t length = o.epoch_batches * o.global_batch;
      if (length == 0) {
        // Until each source has delivered its last sample once.
        std::vector<std::uint64_t> left;
        for (const auto& source : o.sources) left.push_back(samples_of(source));
        std::size_t alive = left.size();
        for (; alive > 0; ++length) {
          std::uint64_t& remaining = left[scheduled ? sources.at(length) : pattern.source_at(length)];
          if (remaining > 0 && --remaining == 0) --alive;
        }
        while (length % o.global_batch != 0) ++length;
      }
      while (now.size() < length) take();
      continue;
    }
    auto left = shares;
    std::vector<std::uint64_t> samples;
    for (std::size_t i = 0; i < o.sources.size(); ++i) {
      samples.push_back(samples_of(o.sources[i]));
      delivered[i] = epoch * samples[i];
    }
    for (std::size_t alive = o.sources.size(); alive > 0; --alive) {
      pattern = mr::detail::mix_pattern(left);
      turn = 0;
      std::size_t source = take();
      while (delivered[source] < (epoch + 1) * samples[source]) source = take();
      left[source] = 0;
      if (o.on_exhausted == mr::exhausted::stop) break;
    }
    if (o.drop_last) now.resize(now.size() / o.global_batch * o.global_batch);
  }
  return all;
}

options random_settings(mr::rng& random) {
  options o;
  const std::size_t sources = 1 + random.below(4);
  for (std::size_t i = 0; i < sources; ++i) {
    mr::detail::mix_source_spec s{.weight = static_cast<double>(1 + random.below(9)), .seed = random.bits()};
    for (std::uint64_t shards = 1 + random.below(5); shards > 0; --shards)
      s.counts.push_back(random.chance(0.2) ? 0 : random.below(30));
    s.counts.push_back(4);
    s.window = random.chance(0.2) ? 0 : 1 + random.below(80);
    o.sources.push_back(std::move(s));
  }
  const mr::exhausted rules[] = {mr::exhausted::stop, mr::exhausted::repeat, mr::exhausted::reweight};
  o.on_exhausted = rules[random.below(3)];
  const bool scheduled = o.on_exhausted == mr::exhausted::repeat && random.chance(0.5);
  for (std::size_t i = 1; scheduled && i < o.sources.size(); ++i) o.sources[i].weight = random_weight(random);
  const std::size_t lanes[] = {1, 2, 12};
  o.lanes = lanes[random.below(3)];
  o.global_batch = random.chance(0.5) ? 1 : 4;
  o.drop_last = random.chance(0.5);
  if (o.on_exhausted == mr::exhausted::repeat && random.chance(0.5)) o.epoch_batches = 1 + random.below(20);
  return o;
}

}  // namespace

TEST_CASE("the plan of a mix equals turns of the sources, each in its own order") {
  mr::rng random({.seed = 1});
  for (int round = 0; round < 150; ++round) {
    const options o = random_settings(random);
    const auto expected = slow_epochs(o, 3);
    const mr::detail::mix_plan plan(o);
    mr::detail::mix_cursor cursor(plan);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      CAPTURE(static_cast<int>(o.on_exhausted));
      REQUIRE(plan.positions() == expected[epoch].size());
      cursor.move_to(epoch, 0);
      for (std::uint64_t p = 0; p < expected[epoch].size(); ++p) {
        const auto next = cursor.next();
        REQUIRE(next);
        REQUIRE(named{next->sample, next->pass} == expected[epoch][p]);
        if (p % 7 == 0) REQUIRE(plan.sample_at(epoch, p) == next);
      }
      REQUIRE(!cursor.next());
    }
  }
}

TEST_CASE("from every position on, and for every number of ranks, the order of a mix is the same") {
  mr::rng random({.seed = 2});
  for (int round = 0; round < 25; ++round) {
    options o = random_settings(random);
    o.drop_last = true;
    o.global_batch = 12;
    for (auto& s : o.sources) s.counts.push_back(40);
    if (changes(o)) o.epoch_batches = 22 + random.below(12);
    const mr::detail::mix_plan plan(o);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const order full = walked(plan, epoch, 0, 1);
      for (std::uint64_t from = 0; from <= full.size(); from += stride(4) * (1 + random.below(9)))
        REQUIRE(walked(plan, epoch, from, 1) == order(full.begin() + static_cast<std::ptrdiff_t>(from), full.end()));
      for (const std::size_t world_size : {2U, 3U, 4U, 6U, 12U}) {
        const std::uint64_t from = random.below(full.size() + 1);
        REQUIRE(walked(plan, epoch, from, world_size) ==
                order(full.begin() + static_cast<std::ptrdiff_t>(from), full.end()));
      }
    }
  }
}

TEST_CASE("the counts of a rank for each source equal those of its walk") {
  mr::rng random({.seed = 3});
  for (int round = 0; round < 60; ++round) {
    options o = random_settings(random);
    o.global_batch = 12;
    for (auto& s : o.sources) s.counts.push_back(40);
    o.drop_last = true;
    const mr::detail::mix_plan plan(o);
    const std::size_t worlds[] = {1, 2, 3, 4, 6, 12};
    mr::world mine{.size = worlds[random.below(6)]};
    mine.rank = random.below(mine.size);
    const std::uint64_t epoch = random.below(3), begin = random.below(plan.positions() + 1),
                        end = begin + random.below(plan.positions() + 1 - begin);
    std::vector<std::uint64_t> met(o.sources.size(), 0);
    for (std::uint64_t p = begin; p < end; ++p)
      if (p % mine.size == mine.rank) ++met[plan.spot_of(epoch, p).source];
    REQUIRE(plan.counts_of(mine, epoch, begin, end) == met);
  }
}

TEST_CASE("the end of an epoch of a mix") {
  const auto of = [](mr::exhausted rule) {
    return options{.sources = {{.weight = 3, .counts = {30}}, {.weight = 1, .counts = {4, 4}}}, .on_exhausted = rule};
  };
  const mr::detail::mix_plan stop(of(mr::exhausted::stop)), cycle(of(mr::exhausted::repeat)),
    all(of(mr::exhausted::reweight));
  CHECK(stop.measure() == 1);   // 8 of every fourth
  CHECK(stop.counts_before(0, stop.positions())[1] == 8);
  CHECK(stop.counts_before(0, stop.positions())[0] < 30);
  CHECK(cycle.measure() == 0);
  CHECK(cycle.counts_before(0, cycle.positions())[0] == 30);
  CHECK(cycle.counts_before(0, cycle.positions())[1] > 8);
  CHECK(all.positions() == 38);
  CHECK(all.measure() == 0);
  CHECK(all.sample_at(0, 37).sample.shard == 0);
}

TEST_CASE("an endless epoch of a mix never ends") {
  const mr::detail::mix_plan plan({.sources = {{.weight = 1, .counts = {5}}, {.weight = 1, .counts = {3}}},
                           .on_exhausted = mr::exhausted::repeat,
                           .epoch_batches = mr::detail::exact_order_options::endless});
  mr::detail::mix_cursor far_cursor(plan, {.position = 1'000'000'000'000});
  CHECK(far_cursor.next()->pass == 500'000'000'000 / 5);
  CHECK_THROWS_WITH_AS(far_cursor.move_to(1, 0), doctest::Contains("epoch 1 does not exist"), mr::setup_error);
}

TEST_CASE("mixes without valid epochs are refused, by the source's number") {
  const auto make = [](options o) { return [o] { mr::detail::mix_plan plan(o); }; };
  CHECK_THROWS_WITH_AS(make({})(), doctest::Contains("a mix has no sources"), mr::setup_error);
  CHECK_THROWS_WITH_AS(make({.sources = {{.counts = {4}}, {.counts = {0, 0}}}})(),
                       doctest::Contains("source 1 of the mix has no sample"), mr::setup_error);
  CHECK_THROWS_WITH_AS(make({.sources = {{.counts = {4}}}, .global_batch = 5})(),
                       doctest::Contains("fewer samples than the global batch of 5"), mr::setup_error);
  CHECK_THROWS_WITH_AS(make({.sources = {{.counts = {4}}}, .global_batch = 0})(),
                       doctest::Contains("the batch size is 0"), mr::setup_error);
  CHECK_THROWS_WITH_AS(make({.sources = {{.counts = {4}}}, .epoch_batches = 5})(), doctest::Contains("that restart"),
                       mr::setup_error);
  const mr::detail::mix_plan plan({.sources = {{.counts = {40}}}, .global_batch = 12});
  CHECK_THROWS_WITH_AS(plan.check({.rank = 0, .size = 5}), doctest::Contains("is not divisible by 5 ranks"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(plan.sample_at(0, 36), doctest::Contains("position 36 is out of range: an epoch has 36"),
                       mr::setup_error);
}

// Weights that change with the position, and many sources.

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
  CHECK_THROWS_WITH_AS(weight::steps({}), doctest::Contains("a source is an empty list"), mr::setup_error);
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
                       doctest::Contains("but its sources do not repeat"), mr::setup_error);
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
