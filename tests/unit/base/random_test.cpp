#include <millrace/base/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <set>
#include <vector>

namespace mr = millrace;

TEST_CASE("the numbers of a key are frozen") {
  mr::rng d({.seed = 1, .epoch = 2, .sample = 3, .stage = 4});
  // From an independent implementation of the published formula (Python integers).
  CHECK(d.bits() == 0xe4d31cad5d82a3c6);
  CHECK(d.bits() == 0x1b1d6dee6f787323);
  CHECK(d.bits() == 0xad65c76779ade73d);
}

TEST_CASE("every part of the key matters") {
  const mr::rng::key base{.seed = 1, .epoch = 1, .sample = 1, .stage = 1};
  std::set<std::uint64_t> first;
  first.insert(mr::rng(base).bits());
  for (auto part : {&mr::rng::key::seed, &mr::rng::key::epoch, &mr::rng::key::sample, &mr::rng::key::stage})
    for (std::uint64_t other : {0, 2, 3}) {
      auto k = base;
      k.*part = other;
      first.insert(mr::rng(k).bits());
    }
  CHECK(first.size() == 13);
}

TEST_CASE("bounded integers are even and reach both ends") {
  mr::rng d({.seed = 5});
  std::array<int, 6> counts{};
  for (int i = 0; i < 60'000; ++i) ++counts[static_cast<std::size_t>(d.between(10, 15) - 10)];
  for (const int n : counts) CHECK((n > 9'600 && n < 10'400));
  CHECK(d.below(1) == 0);
}

TEST_CASE("uniform stays inside its bounds and has the right mean") {
  mr::rng d({.seed = 6});
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double u = d.uniform(2, 4);
    REQUIRE((u >= 2 && u < 4));
    sum += u;
  }
  CHECK(sum / 100'000 == doctest::Approx(3).epsilon(0.005));
  int heads = 0;
  for (int i = 0; i < 100'000; ++i) heads += d.chance(0.25);
  CHECK(heads == doctest::Approx(25'000).epsilon(0.03));
}

TEST_CASE("normal numbers are the same with every compiler and flag, also at compile time") {
  static constexpr mr::rng::key key{.seed = 7, .epoch = 1, .sample = 2, .stage = 3};
  constexpr double first = [] {
    mr::rng d(key);
    return d.normal();
  }();
  static_assert(first == -0x1.000e060bda4eap+0);
  mr::rng d(key);
  for (const double expected : {-0x1.000e060bda4eap+0, 0x1.7841e9d0890f1p-1, 0x1.89b72f74ee0a7p+0,
                                -0x1.635b05c719515p-1, 0x1.aecbcb7e08118p-4, 0x1.5b9bbcfd92358p-4,
                                0x1.5ba8fa0eecd74p-2, 0x1.0b1eed8118d3ap-1})
    CHECK(d.normal() == expected);
  std::uint64_t digest = 0;
  for (int i = 0; i < 100'000; ++i) digest = mr::detail::combine_keys(digest, std::bit_cast<std::uint64_t>(d.normal()));
  CHECK(digest == 0x848413ca333505c7U);
  mr::rng a(key), b(key);
  CHECK(a.normal(3, 0.5) == std::fma(b.normal(), 0.5, 3));
}

TEST_CASE("normal numbers have the normal distribution") {
  mr::rng d({.seed = 11});
  constexpr std::size_t count = 200'000;
  std::vector<double> all(count);
  double sum = 0, squares = 0;
  for (double& x : all) {
    x = d.normal();
    sum += x;
    squares += x * x;
  }
  CHECK(std::abs(sum / count) < 4 / std::sqrt(double(count)));
  CHECK(std::abs(squares / count - 1) < 4 * std::sqrt(2.0 / count));
  std::sort(all.begin(), all.end());
  double distance = 0;   // of Kolmogorov and Smirnov
  for (std::size_t i = 0; i < count; ++i)
    distance = std::max(distance, std::abs((double(i) + 0.5) / count - 0.5 * std::erfc(-all[i] / std::sqrt(2.0))));
  CHECK(distance * std::sqrt(double(count)) < 1.95);   // once in a thousand seeds it would be larger
}

TEST_CASE("an rng is a generator for the distributions of the standard library, and draws bits()") {
  static_assert(std::uniform_random_bit_generator<mr::rng>);
  mr::rng a({.seed = 3}), b({.seed = 3});
  CHECK(a() == b.bits());
  std::normal_distribution<double> normal(10, 1);
  std::uniform_int_distribution<int> dice(1, 6);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    sum += normal(a);
    const int n = dice(a);
    REQUIRE((n >= 1 && n <= 6));
  }
  CHECK(sum / 10'000 == doctest::Approx(10).epsilon(0.01));
  std::vector<int> order{1, 2, 3, 4, 5};
  std::shuffle(order.begin(), order.end(), a);
  CHECK(std::set<int>(order.begin(), order.end()).size() == 5);
}
