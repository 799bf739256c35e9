#include <millrace/base/error.hpp>
#include <millrace/image/beta_draw.hpp>

#include <doctest/doctest.h>

#include <cmath>

namespace mr = millrace;

TEST_CASE("beta draws have the moments of the beta distribution") {
  for (const double alpha : {0.05, 0.1, 0.2, 0.4, 0.8, 0.999, 1.0, 1.001, 1.5, 2.0, 8.0, 300.0}) {
    mr::rng random({.seed = 1});
    constexpr int draws = 60'000;
    double mean = 0, square = 0, fourth = 0;
    int low = 0;
    for (int i = 0; i < draws; ++i) {
      const std::uint64_t draw = mr::detail::beta_draw(random, alpha);
      REQUIRE(draw <= std::uint64_t{1} << 32);
      const double x = static_cast<double>(draw) * 0x1p-32;
      mean += x / draws;
      square += (x - 0.5) * (x - 0.5) / draws;
      fourth += std::pow(x - 0.5, 4) / draws;
      low += x < 0.5 ? 1 : 0;
    }
    CAPTURE(alpha);
    const double variance = 1 / (4 * (2 * alpha + 1));
    CHECK(std::abs(mean - 0.5) < 5 * std::sqrt(variance / draws));
    CHECK(square / variance == doctest::Approx(1).epsilon(0.03));
    CHECK(fourth / (variance * variance * (3 - 6 / (2 * alpha + 3))) == doctest::Approx(1).epsilon(0.06));
    CHECK(std::abs(low - draws / 2) < 5 * std::sqrt(draws / 4.0));
  }
}

TEST_CASE("the draws of a key are fixed for ever, on every compiler and flag") {
  const std::uint64_t expected[] = {
      0x0, 0x0, 0x0, 0x100000000,
      0x305b80e9, 0xe41, 0xc96b8f9, 0xcffcc6a6,
      0x68f0766f, 0x78b2e9c, 0x97327801, 0x5280b5af,
      0x7d182ac7, 0xa76ba288, 0x764d1d5, 0x790f8163,
      0x7d182ac7, 0x70cc6569, 0x35247003, 0x3ce1b293,
      0x7d182ac7, 0x845694ad, 0x6fbb02ab, 0x7e62d223};
  std::size_t i = 0;
  for (const double alpha : {0.01, 0.2, 0.8, 1.0, 2.0, 50.0}) {
    mr::rng random({.seed = 9});
    for (int k = 0; k < 4; ++k) {
      CAPTURE(alpha);
      CHECK(mr::detail::beta_draw(random, alpha) == expected[i++]);
    }
  }
}

TEST_CASE("an impossible alpha is refused") {
  mr::rng random({.seed = 1});
  for (const double alpha : {0.0, -1.0, 1e-4, 1e5, std::nan("")})
    CHECK_THROWS_AS((void)mr::detail::beta_draw(random, alpha), mr::setup_error);
}
