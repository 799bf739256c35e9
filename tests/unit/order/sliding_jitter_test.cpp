#include <millrace/base/random.hpp>
#include <millrace/order/sliding_jitter.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

namespace mr = millrace;

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
