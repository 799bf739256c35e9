#include "slow_mix.hpp"

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
