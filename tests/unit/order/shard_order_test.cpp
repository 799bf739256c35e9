#include <millrace/base/random.hpp>
#include <millrace/order/exact_order.hpp>
#include <millrace/order/shard_order.hpp>
#include <millrace/order/sliding_jitter.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace mr = millrace;

namespace {

/// The order of an epoch of `count` samples, and the largest number that was buffered at once.
std::vector<std::uint64_t> order_of(const mr::detail::shard_order& plan, std::uint64_t epoch, std::size_t count,
                                    std::size_t* peak_size = nullptr) {
  mr::detail::jitter_order<std::uint64_t> order(plan);
  std::vector<std::uint64_t> out;
  const auto drain = [&] {
    while (order.ready()) out.push_back(*order.pop().item);
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    mr::detail::sample<std::uint64_t> s;
    s.epoch = epoch;
    s.item = i;
    order.push(std::move(s));
    if (peak_size) *peak_size = std::max(*peak_size, order.size());
    drain();
  }
  order.end_epoch();
  drain();
  CHECK(order.empty());
  CHECK(order.held_bytes() == 0);
  return out;
}

}  // namespace

TEST_CASE("not shuffled, parts and samples follow in the listed order") {
  const mr::detail::shard_order plan({.seed = 1, .shards = 5});
  CHECK(plan.shards_of(3) == std::vector<std::size_t>{0, 1, 2, 3, 4});
  const auto order = order_of(plan, 0, 100);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("parts are permuted by seed and epoch, each exactly once") {
  std::set<std::vector<std::size_t>> orders;
  for (std::uint64_t seed : {1, 2})
    for (std::uint64_t epoch : {0, 1, 2}) {
      auto shards = mr::detail::shard_order({.seed = seed, .shards = 20, .shuffled = true}).shards_of(epoch);
      CHECK(shards == mr::detail::shard_order({.seed = seed, .shards = 20, .shuffled = true}).shards_of(epoch));
      orders.insert(shards);
      std::sort(shards.begin(), shards.end());
      for (std::size_t i = 0; i < shards.size(); ++i) CHECK(shards[i] == i);
    }
  CHECK(orders.size() == 6);
}

TEST_CASE("every order of parts is about equally likely") {
  std::size_t counts[6] = {};
  for (std::uint64_t epoch = 0; epoch < 6'000; ++epoch) {
    const auto p = mr::detail::shard_order({.seed = 3, .shards = 3, .shuffled = true}).shards_of(epoch);
    ++counts[p[0] * 2 + (p[1] > p[2])];
  }
  for (const std::size_t n : counts) CHECK((n > 850 && n < 1'150));
}

TEST_CASE("the sliding jitter equals sorting all keys") {
  for (const std::size_t window : {2U, 7U, 64U, 1'000U, 5'000U})
    for (const std::uint64_t epoch : {0U, 9U}) {
      const mr::detail::shard_order plan({.seed = 11, .shards = 1, .shuffled = true, .window = window});
      std::vector<std::pair<std::uint64_t, std::uint64_t>> keys;
      for (std::uint64_t i = 0; i < 2'000; ++i)
        keys.emplace_back(window < 2'000 ? plan.jitter_key(epoch, i) : plan.permutation_key(epoch, i), i);
      std::sort(keys.begin(), keys.end());
      const auto order = order_of(plan, epoch, 2'000);
      REQUIRE(order.size() == 2'000);
      for (std::size_t i = 0; i < order.size(); ++i) REQUIRE(order[i] == keys[i].second);
    }
}

TEST_CASE("an epoch of at most a window is a permutation; older orders jitter it, and buffer nothing") {
  for (const std::size_t count : {1U, 50U, 99U, 100U, 101U, 300U}) {
    mr::detail::shard_order::options o{.seed = 3, .shards = 1, .shuffled = true, .window = 100};
    const mr::detail::shard_order plan(o);
    o.permutes = false;
    const mr::detail::shard_order older(o);
    std::size_t buffered = 0, buffered_by_older = 0;
    const auto order = order_of(plan, 0, count, &buffered), before = order_of(older, 0, count, &buffered_by_older);
    CHECK((order == before) == (count == 1 || count > 100));
    CHECK(buffered == std::min<std::size_t>(count, 101));
    CHECK(buffered_by_older <= std::max<std::size_t>(1, 65));
  }
}

TEST_CASE("later epochs buffer nothing if all have the same samples, and those that may differ do") {
  for (const bool equal : {false, true}) {
    const mr::detail::shard_order plan({.seed = 3, .shards = 1, .shuffled = true, .window = 100,
                                        .equal_epochs = equal});
    mr::detail::jitter_order<int> waiting(plan);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::size_t arrived = 0;
      for (; !waiting.ready(); ++arrived) {
        mr::detail::sample<int> s;
        s.epoch = epoch;
        s.item = 0;
        waiting.push(std::move(s));
      }
      CHECK((arrived == 101) == (epoch == 0 || !equal));
      for (; arrived < 500; ++arrived) {
        while (waiting.ready()) waiting.pop();
        mr::detail::sample<int> s;
        s.epoch = epoch;
        s.item = 0;
        waiting.push(std::move(s));
      }
      waiting.end_epoch();
      while (waiting.ready()) waiting.pop();
      waiting.begin_epoch();
    }
  }
}

TEST_CASE("released early, a long epoch keeps its order, and one that the window covers is an error") {
  const mr::detail::shard_order plan({.seed = 3, .shards = 1, .shuffled = true, .window = 100});
  for (const std::size_t count : {60U, 100U, 101U, 400U}) {
    mr::detail::jitter_order<std::uint64_t> waiting(plan);
    std::vector<std::uint64_t> order;
    for (std::uint64_t i = 0; i < count; ++i) {
      mr::detail::sample<std::uint64_t> s;
      s.item = i;
      waiting.push(std::move(s));
      if (i == 50) CHECK(waiting.release());
      if (i == 51) CHECK_FALSE(waiting.release());
      while (waiting.ready()) order.push_back(*waiting.pop().item);
    }
    if (count <= 100) {
      CHECK_THROWS_WITH_AS(waiting.end_epoch(), doctest::Contains("the shuffle window covers the data set"),
                           mr::setup_error);
      continue;
    }
    waiting.end_epoch();
    while (waiting.ready()) order.push_back(*waiting.pop().item);
    CHECK(order == order_of(plan, 0, count));
  }
}

TEST_CASE("a sample moves by less than the window, and about half a window is buffered after the beginning") {
  const mr::detail::shard_order plan({.seed = 5, .shards = 1, .shuffled = true, .window = 500, .permutes = false});
  std::size_t buffered = 0;
  const auto order = order_of(plan, 0, 20'000, &buffered);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto distance = order[i] > i ? order[i] - i : i - order[i];
    REQUIRE(distance < 500);
    moved += distance > 50;
  }
  CHECK(moved > 10'000);
  CHECK(buffered > 200);
  CHECK(buffered < 330);
}

TEST_CASE("one window has another order in each epoch, and the same order each time") {
  const mr::detail::shard_order plan({.seed = 5, .shards = 1, .shuffled = true, .window = 100});
  CHECK(order_of(plan, 0, 1'000) == order_of(plan, 0, 1'000));
  CHECK(order_of(plan, 0, 1'000) != order_of(plan, 1, 1'000));
}

namespace {

std::vector<std::uint64_t> sorted_by_key(const mr::detail::lane_jitter& order) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> keys;
  for (std::uint64_t i = 0; i < order.settings().length; ++i) keys.emplace_back(order.key(i), i);
  std::sort(keys.begin(), keys.end());
  std::vector<std::uint64_t> out;
  for (const auto& [key, i] : keys) out.push_back(i);
  return out;
}

}  // namespace

TEST_CASE("entered at any place, with any window, a lane continues as its sorted keys do") {
  mr::rng random({.seed = 1});
  std::size_t moved = 0;
  for (int round = 0; round < 300; ++round) {
    const mr::detail::lane_jitter order({.seed = random.bits(),
                                 .pass = random.below(3),
                                 .lane = random.below(48),
                                 .length = 1 + random.below(150),
                                 // Fractions of a place: barely above one, a few, more than the lane has.
                                 .window = 65'537 + random.below(std::uint64_t{1} << (4 + random.below(22)))});
    const std::vector<std::uint64_t> expected = sorted_by_key(order);
    moved += !std::is_sorted(expected.begin(), expected.end());
    for (std::uint64_t place = 0; place < expected.size(); ++place) {
      REQUIRE(order.at(place) == expected[place]);
      mr::detail::lane_walk walk(order, place);
      for (std::uint64_t j = place; j < expected.size(); ++j) {
        REQUIRE(walk.ordinal() == j);
        REQUIRE_FALSE(walk.done());
        REQUIRE(walk.next() == expected[j]);
      }
      REQUIRE(walk.done());
    }
    CHECK(mr::detail::lane_walk(order, expected.size()).done());
  }
  CHECK(moved > 120);
}

TEST_CASE("a key is within the window, and depends on seed, pass, lane and index") {
  const mr::detail::lane_jitter::options base{.seed = 3, .pass = 4, .lane = 5, .length = 100, .window = 10 << 16};
  auto seed = base, pass = base, lane = base;
  seed.seed = 6;
  pass.pass = 6;
  lane.lane = 6;
  std::set<std::uint64_t> keys;
  for (const auto& o : {base, seed, pass, lane})
    for (std::uint64_t i = 0; i < 100; ++i) {
      const std::uint64_t jitter = mr::detail::lane_jitter(o).key(i) - (i << 16);
      REQUIRE(jitter < o.window);
      keys.insert(jitter);
    }
  CHECK(keys.size() > 395);
}

TEST_CASE("a window of at most one place moves nothing, and an empty lane is done") {
  for (const std::uint64_t window : {std::uint64_t{0}, mr::detail::lane_jitter::one_place}) {
    const mr::detail::lane_jitter order({.seed = 1, .length = 10, .window = window});
    CHECK(order.at(7) == 7);
    mr::detail::lane_walk walk(order, 7);
    CHECK(walk.next() == 7);
    CHECK(walk.next() == 8);
  }
  CHECK(mr::detail::lane_walk().done());
  CHECK(mr::detail::lane_walk(mr::detail::lane_jitter({.length = 0, .window = 10 << 16}), 0).done());
}

namespace {

struct entry {
  std::uint64_t key = 0, index = 0, carried = 0;
};

}  // namespace

TEST_CASE("entries leave in the order of their keys, as soon as that is certain") {
  mr::rng d({.seed = 11});
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t length = d.below(60) + 1, window = (d.below(12) << 16) + 1;
    std::vector<entry> all;
    for (std::uint64_t i = 0; i < length; ++i)   // coarse keys are often equal
      all.push_back({.key = (i << 16) + (d.below(window) & ~std::uint64_t{0x7fff}), .index = i, .carried = d.bits()});
    std::vector<entry> sorted = all;
    std::sort(sorted.begin(), sorted.end(),
              [](const entry& a, const entry& b) { return std::tie(a.key, a.index) < std::tie(b.key, b.index); });

    const std::uint64_t left = d.below(length);   // the number of earlier entries at its start
    std::uint64_t arrived = left == 0 ? 0 : (sorted[left - 1].key >> 16) + 1;
    arrived = std::min(length, std::max(arrived, sorted[left].index + 1));
    std::vector<entry> buffered;
    for (std::uint64_t o = left; o < length; ++o)
      if (sorted[o].index < arrived) buffered.push_back(sorted[o]);
    for (std::uint64_t o = 0; o < left; ++o) REQUIRE(sorted[o].index < arrived);

    mr::detail::sliding_jitter<entry> order;
    order.start(arrived, buffered);
    for (std::uint64_t o = left; o < length; ++o) {
      while (order.arrived() < length && !order.is_certain()) {
        const std::uint64_t next = order.arrived();
        order.push({.key = all[next].key, .index = 99, .carried = all[next].carried});
        REQUIRE(order.arrived() == next + 1);
      }
      const entry got = order.pop();
      REQUIRE(got.index == sorted[o].index);
      REQUIRE(got.key == sorted[o].key);
      REQUIRE(got.carried == sorted[o].carried);
    }
    CHECK(order.empty());
    CHECK_FALSE(order.is_certain());
  }
}
