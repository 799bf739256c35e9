#include <millrace/base/fixed_point.hpp>
#include <millrace/base/radix_sort.hpp>
#include <millrace/base/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
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

// radix_sort against std::stable_sort.

namespace {

struct item {
  std::uint64_t key = 0;
  std::size_t number = 0;
  friend bool operator==(const item&, const item&) = default;
};

}  // namespace

TEST_CASE("items are sorted by their keys, and the order of equal keys is stable") {
  // Bytes that all keys share are below, between and above those that differ.
  for (const std::uint64_t differing : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{0xff}, std::uint64_t{0x1fff},
                                        std::uint64_t{0xf00001fff}, std::uint64_t{0xff} << 56, ~std::uint64_t{0}})
    for (const std::size_t count : {0, 1, 2, 3, 16, 255, 257, 4096}) {
      CAPTURE(differing);
      CAPTURE(count);
      std::vector<item> items;
      for (std::size_t i = 0; i < count; ++i)
        items.push_back({(mr::detail::combine_keys(differing, i) & differing) | (0x5a5a5a5a5a5a5a5aU & ~differing), i});
      std::vector<item> expected = items;
      std::stable_sort(expected.begin(), expected.end(), [](const item& a, const item& b) { return a.key < b.key; });
      mr::detail::radix_sort(items, [](const item& one) { return one.key; });
      CHECK(items == expected);
    }
}

TEST_CASE("fixed-point powers, logarithms and roots agree with real ones") {
  mr::rng d({.seed = 1});
  for (int i = 0; i < 2'000; ++i) {
    const std::int64_t x = d.between(-(std::int64_t{10} << 32), std::int64_t{10} << 32);
    const double expected = std::exp2(static_cast<double>(x) * 0x1p-32) * 0x1p32;
    CHECK(static_cast<double>(mr::detail::fixed_exp2(x)) == doctest::Approx(expected).epsilon(1e-6));
    const std::uint64_t y = d.bits() >> d.below(40);
    if (y > 0) {
      const double log = static_cast<double>(mr::detail::fixed_log2(y)) * 0x1p-32;
      CHECK(std::abs(log - (std::log2(static_cast<double>(y)) - 32)) < 1e-9);
    }
    const auto wide = mr::detail::unsigned_128{d.bits()} * (d.bits() >> d.below(64)) >> d.below(100);
    const auto root = mr::detail::integer_sqrt(wide);
    CHECK(mr::detail::unsigned_128{root} * root <= wide);
    CHECK((mr::detail::unsigned_128{root} + 1) * (mr::detail::unsigned_128{root} + 1) > wide);
  }
}

TEST_CASE("small powers reach zero") {
  CHECK(mr::detail::fixed_exp2(-(std::int64_t{32} << 32)) == 1);
  CHECK(mr::detail::fixed_exp2(-(std::int64_t{33} << 32) + 1) == 0);
}

TEST_CASE("sines and cosines agree with libm's") {
  mr::rng d({.seed = 2});
  int equal = 0;
  constexpr int angles = 20'000;
  for (int i = 0; i < angles; ++i) {
    const double angle = i < 100 ? i * 0.0625 : d.uniform(0, 8);
    const auto [sine, cosine] = mr::detail::sine_and_cosine_of(angle);
    CHECK(std::abs(sine - std::sin(angle)) <= 0x1p-53);
    CHECK(std::abs(cosine - std::cos(angle)) <= 0x1p-53);
    equal += sine == std::sin(angle) && cosine == std::cos(angle) ? 1 : 0;
  }
  MESSAGE(equal, " of ", angles, " angles have libm's bits");
  CHECK(mr::detail::sine_of(0) == 0);
  CHECK(mr::detail::cosine_of(0) == 1);
}

TEST_CASE("exponential draws have the mean and the variance of the exponential distribution") {
  mr::rng d({.seed = 3});
  double sum = 0, squares = 0;
  constexpr int draws = 100'000;
  for (int i = 0; i < draws; ++i) {
    const double value = static_cast<double>(mr::detail::fixed_exponential(d)) * 0x1p-32 * std::log(2.0);
    sum += value;
    squares += value * value;
  }
  CHECK(std::abs(sum / draws - 1) < 0.02);
  CHECK(std::abs(squares / draws - 2) < 0.1);
}

TEST_CASE("normal draws have the moments of the normal distribution") {
  mr::rng d({.seed = 4});
  double sum = 0, squares = 0, fourth = 0;
  int beyond = 0;
  constexpr int draws = 100'000;
  for (int i = 0; i < draws; ++i) {
    const double value = static_cast<double>(mr::detail::fixed_normal(d)) * 0x1p-32;
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
    beyond += std::abs(value) > 1.959964 ? 1 : 0;
  }
  CHECK(std::abs(sum / draws) < 0.02);
  CHECK(std::abs(squares / draws - 1) < 0.02);
  CHECK(std::abs(fourth / draws - 3) < 0.15);
  CHECK(std::abs(beyond - 5'000) < 300);
}
