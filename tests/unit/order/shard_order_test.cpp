#include <millrace/order/shard_order.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

namespace mr = millrace;

namespace {

/// The order of an epoch of `count` samples, and the most that were held at once.
std::vector<std::uint64_t> order_of(const mr::detail::shard_order& plan, std::uint64_t epoch, std::size_t count,
                                    std::size_t* held = nullptr) {
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
    if (held) *held = std::max(*held, order.size());
    drain();
  }
  order.end_epoch();
  drain();
  CHECK(order.empty());
  CHECK(order.held_bytes() == 0);
  return out;
}

}  // namespace

TEST_CASE("not shuffled, parts and samples come as listed") {
  const mr::detail::shard_order plan({.seed = 1, .shards = 5});
  CHECK(plan.shards_of(3) == std::vector<std::size_t>{0, 1, 2, 3, 4});
  const auto order = order_of(plan, 0, 100);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("parts are permuted by seed and epoch, each exactly once") {
  std::set<std::vector<std::size_t>> seen;
  for (std::uint64_t seed : {1, 2})
    for (std::uint64_t epoch : {0, 1, 2}) {
      auto shards = mr::detail::shard_order({.seed = seed, .shards = 20, .shuffled = true}).shards_of(epoch);
      CHECK(shards == mr::detail::shard_order({.seed = seed, .shards = 20, .shuffled = true}).shards_of(epoch));
      seen.insert(shards);
      std::sort(shards.begin(), shards.end());
      for (std::size_t i = 0; i < shards.size(); ++i) CHECK(shards[i] == i);
    }
  CHECK(seen.size() == 6);
}

TEST_CASE("every order of parts is about equally likely") {
  std::size_t seen[6] = {};
  for (std::uint64_t epoch = 0; epoch < 6'000; ++epoch) {
    const auto p = mr::detail::shard_order({.seed = 3, .shards = 3, .shuffled = true}).shards_of(epoch);
    ++seen[p[0] * 2 + (p[1] > p[2])];
  }
  for (const std::size_t n : seen) CHECK((n > 850 && n < 1'150));
}

TEST_CASE("the sliding jitter is what sorting all keys gives") {
  for (const std::size_t window : {2U, 7U, 64U, 1'000U, 5'000U})
    for (const std::uint64_t epoch : {0U, 9U}) {
      const mr::detail::shard_order plan({.seed = 11, .shards = 1, .shuffled = true, .window = window});
      std::vector<std::pair<std::uint64_t, std::uint64_t>> keys;
      for (std::uint64_t i = 0; i < 2'000; ++i) keys.emplace_back(plan.jitter_key(epoch, i), i);
      std::sort(keys.begin(), keys.end());
      const auto order = order_of(plan, epoch, 2'000);
      REQUIRE(order.size() == 2'000);
      for (std::size_t i = 0; i < order.size(); ++i) REQUIRE(order[i] == keys[i].second);
    }
}

TEST_CASE("a sample moves by less than the window, and about half a window is held") {
  const mr::detail::shard_order plan({.seed = 5, .shards = 1, .shuffled = true, .window = 500});
  std::size_t held = 0;
  const auto order = order_of(plan, 0, 20'000, &held);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto distance = order[i] > i ? order[i] - i : i - order[i];
    REQUIRE(distance < 500);
    moved += distance > 50;
  }
  CHECK(moved > 10'000);
  CHECK(held > 200);
  CHECK(held < 330);
}

TEST_CASE("one window is another order in each epoch, and the same order each time") {
  const mr::detail::shard_order plan({.seed = 5, .shards = 1, .shuffled = true, .window = 100});
  CHECK(order_of(plan, 0, 1'000) == order_of(plan, 0, 1'000));
  CHECK(order_of(plan, 0, 1'000) != order_of(plan, 1, 1'000));
}
