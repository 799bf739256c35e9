#include <millrace/image/plan/beta_draw.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>

namespace mr = millrace;

namespace {

constexpr int draws = 100'000;

double share_of(std::uint64_t fixed) { return static_cast<double>(fixed) * 0x1p-32; }

/// The integral of (x (1 - x))^(alpha - 1) from 0 to `end`, which is at most one half: by x = t^(1 / alpha), which
/// leaves no pole at 0.
double integral_to(double end, double alpha) {
  constexpr int steps = 20'000;
  const double width = std::pow(end, alpha) / steps;
  double sum = 0;
  for (int i = 0; i < steps; ++i) sum += std::pow(1 - std::pow((i + 0.5) * width, 1 / alpha), alpha - 1);
  return sum * width / alpha;
}

/// The probability of a share up to `end`.
double expected_below(double end, double alpha) { return 0.5 * integral_to(end, alpha) / integral_to(0.5, alpha); }

}  // namespace

TEST_CASE("shares have the moments and the quantiles of Beta(alpha, alpha)") {
  for (const double alpha : {0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.5, 2.0, 4.0, 32.0}) {
    CAPTURE(alpha);
    const mr::detail::beta_draw draw(alpha);
    mr::rng random({.seed = 7, .stage = static_cast<std::uint64_t>(alpha * 100)});
    double sum = 0, squares = 0, fourths = 0;
    constexpr std::array ends = {0.001, 0.02, 0.1, 0.25, 0.4, 0.5};
    std::array<int, ends.size()> below{}, above{};
    for (int i = 0; i < draws; ++i) {
      const std::uint64_t fixed = draw(random);
      REQUIRE(fixed <= std::uint64_t{1} << 32);
      const double x = share_of(fixed) - 0.5;
      sum += x;
      squares += x * x;
      fourths += x * x * x * x;
      for (std::size_t e = 0; e < ends.size(); ++e) {
        below[e] += share_of(fixed) <= ends[e] ? 1 : 0;
        above[e] += share_of(fixed) >= 1 - ends[e] ? 1 : 0;
      }
    }
    const double variance = 0.25 / (2 * alpha + 1);
    const double kurtosis = 3 - 6 / (2 * alpha + 3);
    CHECK(std::abs(sum / draws) < 5 * std::sqrt(variance / draws));
    CHECK(squares / draws == doctest::Approx(variance).epsilon(0.02));
    CHECK(fourths / draws == doctest::Approx(kurtosis * variance * variance).epsilon(0.04));
    for (std::size_t e = 0; e < ends.size(); ++e) {
      CAPTURE(ends[e]);
      const double p = expected_below(ends[e], alpha);
      const double margin = 5 * std::sqrt(p * (1 - p) * draws) + 1;
      CHECK(std::abs(below[e] - p * draws) < margin);
      CHECK(std::abs(above[e] - p * draws) < margin);
    }
  }
}

TEST_CASE("the draws are pinned: no compiler, machine or version may change them") {
  std::string text;
  for (const double alpha : {0.01, 0.2, 0.8, 1.0, 2.0}) {
    const mr::detail::beta_draw draw(alpha);
    mr::rng random({.seed = 1, .epoch = 2, .sample = 3, .stage = 4});
    for (int i = 0; i < 3; ++i) text += std::to_string(draw(random)) + " ";
  }
  CHECK(text == "4294967296 4294967296 0 4294866955 4290798358 4294095440 4015775841 3650470577 1571044705 3839040686 "
                 "454913518 2909128552 3839040685 2909128551 2464016681 ");
}

TEST_CASE("an alpha out of range is refused by its value") {
  for (const double alpha : {0.0, -1.0, 0.0009, 1025.0, std::nan("")}) {
    CHECK_THROWS_AS(mr::detail::beta_draw{alpha}, mr::setup_error);
  }
  CHECK_THROWS_WITH(mr::detail::beta_draw{2000}, doctest::Contains("got 2000.000000, expected 1/1024 to 1024"));
}
