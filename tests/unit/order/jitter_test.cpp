#include <millrace/base/random.hpp>
#include <millrace/order/exact_order.hpp>
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
