#include <millrace/order/lane_cursor.hpp>
#include <millrace/order/shard_order.hpp>
#include <millrace/order/shuffle_quality.hpp>

#include "shuffle_measures.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace mr = millrace;
using shuffle_measures::comparison;
using shuffle_measures::data_set;
using shuffle_measures::order;

namespace {

using options = mr::detail::exact_order_options;

double largest_share(const std::vector<std::uint64_t>& shards) {
  std::map<std::uint64_t, double> rows;
  double most = 0;
  for (const std::uint64_t shard : shards) most = std::max(most, ++rows[shard]);
  return most / static_cast<double>(shards.size());
}

/// Counted by walking complete epochs.
struct counted {
  double share = 0, neighbor_distance = 0;
};
counted count(const options& o, const mr::world& r, std::uint64_t epochs) {
  const mr::detail::exact_order plan(o);
  double shares = 0, batches = 0, distances = 0, pairs = 0;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    mr::detail::lane_cursor cursor(plan, {.world = r, .epoch = epoch});
    std::vector<std::uint64_t> batch;
    std::map<std::pair<std::uint64_t, std::uint64_t>, double> where;
    while (const auto s = cursor.next()) {
      batch.push_back(s->sample.shard);
      where[{s->sample.shard, s->sample.index}] = static_cast<double>(s->position);
      if (batch.size() < o.global_batch / r.size) continue;
      shares += largest_share(batch);
      ++batches;
      batch.clear();
    }
    for (const auto& [s, p] : where)
      if (const auto next = where.find({s.first, s.second + 1}); s.second % 2 == 0 && next != where.end()) {
        distances += std::abs(next->second - p);
        ++pairs;
      }
  }
  return {shares / batches, distances / pairs};
}

/// The same for data sets that are shuffled globally.
double count_ideal(const options& o, const mr::world& r) {
  std::vector<std::uint64_t> all;
  for (std::size_t shard = 0; shard < o.counts.size(); ++shard) all.insert(all.end(), o.counts[shard], shard);
  const std::size_t rows = o.global_batch / r.size;
  mr::rng random({.seed = 99});
  double shares = 0, batches = 0;
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
    for (std::size_t at = 0; at + rows <= all.size(); at += rows, ++batches)
      shares += largest_share({all.begin() + static_cast<std::ptrdiff_t>(at),
                               all.begin() + static_cast<std::ptrdiff_t>(at + rows)});
  }
  return shares / batches;
}

struct setting {
  options plan;
  mr::world world{};
};

std::vector<setting> settings() {
  return {
      {{.seed = 1, .counts = std::vector<std::uint64_t>(100, 200), .lanes = 12, .global_batch = 96}},
      {{.seed = 1, .counts = std::vector<std::uint64_t>(100, 200), .lanes = 48, .global_batch = 96}, {1, 2}},
      {{.seed = 2, .counts = std::vector<std::uint64_t>(40, 500), .lanes = 1, .global_batch = 100}},
      {{.seed = 3, .counts = {4'000, 200, 0, 3'000, 1, 1'500, 2'500, 800, 2'000, 4'000}, .lanes = 6,
        .global_batch = 60}},
      {{.seed = 5, .counts = std::vector<std::uint64_t>(40, 500), .global_batch = 100}, {1, 5}},
      {{.seed = 6, .counts = std::vector<std::uint64_t>(60, 300), .lanes = 6, .global_batch = 80}, {3, 4}},
      {{.seed = 4, .counts = std::vector<std::uint64_t>(3'000, 5), .lanes = 12, .global_batch = 240}, {3, 4}},
  };
}

double near(double value, double target) { return std::abs(value / target - 1); }

}  // namespace

TEST_CASE("the expected share equals the count over batches, for every window") {
  for (setting s : settings())
    for (const std::size_t window : {1U, 50U, 2'000U, 100'000U}) {
      s.plan.window = window;
      CAPTURE(s.plan.seed);
      CAPTURE(window);
      const double expected = mr::detail::shuffle_forecast(mr::detail::exact_order(s.plan), s.world).share();
      CHECK(near(expected, count(s.plan, s.world, 12).share) < 0.04);
    }
}

TEST_CASE("the ideal share is that of a globally shuffled data set") {
  for (const setting& s : settings()) {
    CAPTURE(s.plan.seed);
    const mr::detail::exact_order order(s.plan);
    CHECK(near(mr::detail::shuffle_forecast(order, s.world).ideal_share(), count_ideal(s.plan, s.world)) < 0.03);
  }
}

TEST_CASE("the recommended window brings the share within 10 % of the ideal, and a clearly smaller one does not") {
  for (setting s : settings()) {
    CAPTURE(s.plan.seed);
    s.world = {};
    const auto window = mr::detail::shuffle_forecast(mr::detail::exact_order(s.plan), s.world).window_within(0.10);
    REQUIRE(window);
    const double ideal = count_ideal(s.plan, s.world);
    s.plan.window = *window;
    CHECK(count(s.plan, s.world, 12).share < ideal * 1.10 * 1.03);
    s.plan.window = *window * 2 / 3;
    if (*window > 1) CHECK(count(s.plan, s.world, 12).share > ideal * 1.10 * 0.97);
  }
}

TEST_CASE("if no window helps, none is recommended; if all is one part, none is needed") {
  const mr::detail::exact_order few_rows({.counts = std::vector<std::uint64_t>(12, 1'000), .lanes = 48,
                                          .global_batch = 16, .permutes = false});
  CHECK_FALSE(mr::detail::shuffle_forecast(few_rows).window_within(0.10));
  const setting small_shards = settings().back();
  CHECK(mr::detail::shuffle_forecast(mr::detail::exact_order(small_shards.plan),
                                     small_shards.world).window_within(0.10) <= 15'000);
  const mr::detail::exact_order one_shard({.counts = {10'000}, .global_batch = 48});
  CHECK(mr::detail::shuffle_forecast(one_shard).ideal_share() == 1);
  CHECK(mr::detail::shuffle_forecast(one_shard).share() == 1);
  CHECK(mr::detail::shuffle_forecast(one_shard).window_within(0.10) == 1);
}

TEST_CASE("not shuffled, a batch is one part after the other") {
  const mr::detail::exact_order plan({.counts = std::vector<std::uint64_t>(10, 100), .shuffled = false,
                                      .global_batch = 50});
  CHECK(mr::detail::shuffle_forecast(plan).share() == 1);
  CHECK(mr::detail::shuffle_forecast(plan).share(100'000) < 0.3);
}

TEST_CASE("live statistics equal those of a count") {
  for (setting s : settings())
    for (const std::size_t window : {300U, 12'000U}) {
      s.plan.window = window;
      CAPTURE(s.plan.seed);
      CAPTURE(window);
      const mr::detail::exact_order plan(s.plan);
      mr::detail::shuffle_quality live(plan, s.world);
      mr::detail::lane_cursor cursor(plan, {.world = s.world});
      for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
        cursor.move_to(epoch, 0);
        while (const auto planned = cursor.next()) live.add(*planned);
      }
      const mr::shuffle_statistics f = live.statistics();
      const counted slow = count(s.plan, s.world, 4);
      CHECK(f.share == doctest::Approx(slow.share));
      CHECK(f.batches == 4 * plan.batches());
      CHECK(near(f.neighbor_distance, slow.neighbor_distance) < 0.10);
      CHECK(f.neighbors > 300);
      CHECK(f.ideal_neighbor_distance == doctest::Approx(static_cast<double>(plan.pass_length() + 1) / 3));
    }
}

TEST_CASE("only some of many batches are watched, and their share is the same") {
  const options o{.seed = 6, .counts = std::vector<std::uint64_t>(100, 1'000), .window = 2'400, .lanes = 6,
                  .global_batch = 12};
  const mr::detail::exact_order plan(o);
  mr::detail::shuffle_quality live(plan);
  mr::detail::lane_cursor cursor(plan);
  while (const auto s = cursor.next()) live.add(*s);
  CHECK(live.statistics().batches == (plan.batches() + 7) / 8);
  CHECK(near(live.statistics().share, count(o, {}, 1).share) < 0.05);
}

TEST_CASE("neighbors end up a third of the window apart") {
  const options o{.seed = 5, .counts = std::vector<std::uint64_t>(20, 2'000), .window = 2'400, .lanes = 6,
                  .global_batch = 60};
  const mr::detail::exact_order plan(o);
  mr::detail::shuffle_quality live(plan);
  mr::detail::lane_cursor cursor(plan);
  while (const auto s = cursor.next()) live.add(*s);
  CHECK(near(live.statistics().neighbor_distance, 800) < 0.05);
}

TEST_CASE("a batch that was entered in its middle does not count") {
  const mr::detail::exact_order plan({.counts = {600}, .lanes = 6, .global_batch = 60});
  mr::detail::shuffle_quality live(plan);
  mr::detail::lane_cursor cursor(plan, {.position = 30});
  for (int i = 0; i < 30 + 60 + 59; ++i) live.add(*cursor.next());
  CHECK(live.statistics().batches == 1);
  live.add(*cursor.next());
  CHECK(live.statistics().batches == 2);
}

// The quality of a shuffle follows from the window and the size of the data set: every source shuffles like a sliding
// window over the complete pass, for every number of shards and ranks. MILLRACE_SHUFFLES=100000 runs the complete
// matrix, up to 100,000 samples with 200 seeds.

namespace {

struct configuration {
  data_set data;
  std::uint64_t window;
};

/// All configurations of a size that can be tested in the available time.
std::vector<configuration> configurations(std::uint64_t most) {
  std::vector<configuration> all;
  for (const std::uint64_t samples : {20U, 40U, 100U, 333U, 1'000U, 10'000U, 100'000U})
    for (const std::uint64_t shards : {1U, 2U, 5U, 40U, 200U})
      for (const std::uint64_t window : {2U, 10U, 20U, 99U, 1'000U, 8'192U, 1'000'000U})
        if (samples <= most && shards <= samples) all.push_back({{samples, shards}, window});
  return all;
}

/// A pass of an exact order, merged from the outputs of the cursors of all ranks.
order pass_of_ranks(const mr::detail::exact_order& plan, const data_set& data, std::uint64_t epoch,
                    std::size_t ranks) {
  const std::vector<std::uint64_t> starts = data.starts();
  order all(data.samples);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    mr::detail::lane_cursor cursor(plan, {.world = {.rank = rank, .size = ranks}, .epoch = epoch});
    while (const auto s = cursor.next()) all[s->position] = starts[s->sample.shard] + s->sample.index;
  }
  return all;
}

/// A pass of a source that is read shard by shard, on one rank.
order pass_of_stream(const mr::detail::shard_order& plan, mr::detail::jitter_order<std::uint64_t>& waiting,
                     const data_set& data, std::uint64_t epoch) {
  const std::vector<std::uint64_t> starts = data.starts();
  order all;
  const auto drain = [&] {
    while (waiting.ready()) all.push_back(*waiting.pop().item);
  };
  for (const std::size_t shard : plan.shards_of(epoch))
    for (std::uint64_t i = starts[shard]; i < starts[shard + 1]; ++i) {
      mr::detail::sample<std::uint64_t> s;
      s.epoch = epoch;
      s.item = i;
      waiting.push(std::move(s));
      drain();
    }
  waiting.end_epoch();
  drain();
  waiting.begin_epoch();
  return all;
}

}  // namespace

TEST_CASE("shuffles: an exact order is a sliding window over the complete pass, for every number of ranks") {
  comparison all("exact order");
  std::size_t number = 0;
  for (const configuration& c : configurations(shuffle_measures::largest_set())) {
    const data_set& data = c.data;
    const std::size_t ranks = std::initializer_list<std::size_t>{1, 2, 3, 5, 8}.begin()[number++ % 5];
    all.add(data, c.window, shuffle_measures::seeds(100), [&](std::uint64_t seed) {
      const mr::detail::exact_order plan({.seed = seed, .counts = data.counts(), .window = c.window,
                                          .global_batch = ranks, .drop_last = false});
      return std::pair(pass_of_ranks(plan, data, 0, ranks), pass_of_ranks(plan, data, 1, ranks));
    });
  }
}

TEST_CASE("shuffles: so is the order of a source that is read from its beginning, of unknown length") {
  comparison all("stream");
  for (const configuration& c : configurations(shuffle_measures::largest_set()))
    for (const bool equal_epochs : {false, true})
      all.add(c.data, c.window, shuffle_measures::seeds(100), [&](std::uint64_t seed) {
        const mr::detail::shard_order plan({.seed = seed, .shards = c.data.shards, .shuffled = true, .window = c.window,
                                            .equal_epochs = equal_epochs});
        mr::detail::jitter_order<std::uint64_t> waiting(plan);
        order first = pass_of_stream(plan, waiting, c.data, 0);
        return std::pair(std::move(first), pass_of_stream(plan, waiting, c.data, 1));
      });
}

TEST_CASE("shuffles: a window of all samples produces every order of four samples equally often") {
  std::size_t times[24] = {};
  for (std::uint64_t seed = 0; seed < 24'000; ++seed) {
    const mr::detail::exact_order plan({.seed = seed, .counts = {2, 2}, .window = 4});
    const data_set data{4, 2};
    order p = pass_of_ranks(plan, data, 0, 1);
    std::size_t number = 0;
    for (std::size_t i = 0; i < 4; ++i)
      number = number * (4 - i) + static_cast<std::size_t>(std::count_if(
                                      p.begin() + static_cast<std::ptrdiff_t>(i), p.end(),
                                      [&](std::uint64_t other) { return other < p[i]; }));
    ++times[number];
  }
  for (const std::size_t n : times) CHECK((n > 880 && n < 1'120));
}

TEST_CASE("shuffles: an explicit number of lanes does not weaken a window of all samples") {
  comparison all("explicit lanes");
  for (const std::size_t lanes : {4U, 48U})
    for (const std::uint64_t samples : {20U, 100U})
      all.add({samples, 2}, samples, 100, [&](std::uint64_t seed) {
        const data_set data{samples, 2};
        const mr::detail::exact_order plan({.seed = seed, .counts = data.counts(), .window = samples, .lanes = lanes,
                                            .drop_last = false});
        return std::pair(pass_of_ranks(plan, data, 0, 1), pass_of_ranks(plan, data, 1, 1));
      });
}

TEST_CASE("shuffles: large sets of many shards have lanes, whatever the ranks, and all others have one") {
  const auto lanes = [](std::uint64_t samples, std::uint64_t shards, std::size_t window) {
    return mr::detail::exact_order({.counts = data_set{samples, shards}.counts(), .window = window}).settings().lanes;
  };
  CHECK(lanes(1'281'167, 1'281, 8'192) == 48);
  CHECK(lanes(1'281'167, 147, 8'192) == 16);
  CHECK(lanes(1'281'167, 1'281, 2'000) == 12);
  CHECK(lanes(1'281'167, 1'281, 100'000) == 1);
  CHECK(lanes(1'281'167, 1, 8'192) == 1);
  CHECK(lanes(200'000, 200, 1'000) == 1);
  CHECK(lanes(1'281'167, 1'281, 2'000'000) == 1);
}
