#include <millrace/order/shard_order.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

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
