#include <millrace/base/fixed_point.hpp>

#include <doctest/doctest.h>

#include <cmath>

namespace mr = millrace;

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
