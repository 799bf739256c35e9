#include <millrace/order/lane_cursor.hpp>
#include <millrace/order/shuffle_quality.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace mr = millrace;

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
