#include <millrace/image/plan/random_crop.hpp>

#include <doctest/doctest.h>

#include <cmath>

namespace mr = millrace;

TEST_CASE("random crops have the area and the ratio of the published rule") {
  // The rule in floating point, with another generator's numbers.
  struct totals {
    double area = 0, area_square = 0, log_ratio = 0, log_ratio_square = 0, left = 0, top = 0;
    void add(double a, double r, double l, double t) {
      area += a, area_square += a * a, log_ratio += r, log_ratio_square += r * r, left += l, top += t;
    }
  };
  constexpr int rounds = 40'000;
  for (const auto& [width, height] :
       {std::pair{500, 375}, std::pair{375, 500}, std::pair{64, 64}, std::pair{800, 100}}) {
    const double w0 = width, h0 = height;
    totals ours, real;
    mr::rng d({.seed = 2}), e({.seed = 3});
    for (int i = 0; i < rounds; ++i) {
      const mr::picture_size size{.width = static_cast<std::size_t>(width), .height = static_cast<std::size_t>(height)};
      const auto box = mr::detail::random_crop_box(size, d);
      REQUIRE((box.width > 0 && box.height > 0));
      REQUIRE(box.left + box.width <= static_cast<std::size_t>(width));
      REQUIRE(box.top + box.height <= static_cast<std::size_t>(height));
      const auto w = static_cast<double>(box.width), h = static_cast<double>(box.height);
      ours.add(w * h / (w0 * h0), std::log(w / h), static_cast<double>(box.left) / w0,
               static_cast<double>(box.top) / h0);
      double cw = 0, ch = 0, cl = 0, ct = 0;
      bool fits = false;
      for (int attempt = 0; attempt < 10 && !fits; ++attempt) {
        const double area = w0 * h0 * e.uniform(0.08, 1),
                     ratio = std::exp(e.uniform(std::log(3. / 4), std::log(4. / 3)));
        cw = std::round(std::sqrt(area * ratio));
        ch = std::round(std::sqrt(area / ratio));
        if (cw < 1 || ch < 1 || cw > w0 || ch > h0) continue;
        ct = std::floor(e.uniform() * (h0 - ch + 1));
        cl = std::floor(e.uniform() * (w0 - cw + 1));
        fits = true;
      }
      if (!fits) {
        cw = w0 / h0 > 4. / 3 ? std::round(h0 * 4 / 3) : w0;
        ch = w0 / h0 < 3. / 4 ? std::round(w0 * 4 / 3) : h0;
        cl = std::floor((w0 - cw) / 2);
        ct = std::floor((h0 - ch) / 2);
      }
      real.add(cw * ch / (w0 * h0), std::log(cw / ch), cl / w0, ct / h0);
    }
    const auto near = [](double a, double b, double tolerance) {
      return std::abs(a / rounds - b / rounds) < tolerance;
    };
    CHECK(near(ours.area, real.area, 0.006));
    CHECK(near(ours.area_square, real.area_square, 0.006));
    CHECK(near(ours.log_ratio, real.log_ratio, 0.006));
    CHECK(near(ours.log_ratio_square, real.log_ratio_square, 0.002));
    CHECK(near(ours.left, real.left, 0.005));
    CHECK(near(ours.top, real.top, 0.005));
  }
}

TEST_CASE("if no box fits, the largest central one of an allowed ratio is used") {
  mr::rng d({.seed = 4});
  CHECK(mr::detail::random_crop_box({.width = 1000, .height = 10}, d, {.scale_min = 1}) ==
        mr::crop_box{.left = 493, .top = 0, .width = 13, .height = 10});
  CHECK(mr::detail::random_crop_box({.width = 10, .height = 1000}, d, {.scale_min = 1}) ==
        mr::crop_box{.left = 0, .top = 493, .width = 10, .height = 13});
  CHECK(mr::detail::random_crop_box({.width = 1, .height = 1}, d) ==
        mr::crop_box{.left = 0, .top = 0, .width = 1, .height = 1});
  CHECK(mr::detail::random_crop_box({.width = 65535, .height = 1}, d).height == 1);
}

TEST_CASE("the crops of a key are frozen, on every compiler and flag") {
  const std::array<mr::picture_size, 5> sizes = {{{500, 375}, {375, 500}, {224, 224}, {3000, 20}, {65535, 65535}}};
  // From an independent implementation of the rule (Python, integers for the draws, floating point for the rest).
  const mr::crop_box expected[] = {
      {81, 2, 329, 301}, {68, 16, 331, 278}, {302, 143, 151, 145},
      {22, 5, 329, 301}, {18, 36, 331, 278}, {194, 220, 151, 145},
      {26, 1, 170, 156}, {21, 13, 171, 144}, {127, 92, 78, 75},
      {1486, 0, 27, 20}, {1486, 0, 27, 20}, {1486, 0, 27, 20},
      {7417, 575, 49850, 45624}, {6252, 3874, 50115, 42144}, {36886, 27020, 22855, 21927}};
  std::size_t i = 0;
  for (const auto& size : sizes)
    for (std::uint64_t sample = 0; sample < 3; ++sample) {
      mr::rng d({.seed = 9, .sample = sample});
      const auto box = mr::detail::random_crop_box(size, d);
      CAPTURE(i);
      CHECK(box == expected[i++]);
    }
}

TEST_CASE("impossible options are refused") {
  mr::rng d({.seed = 5});
  for (const mr::random_crop_options& o : {mr::random_crop_options{.scale_min = 0},
                                           {.scale_min = 0.9, .scale_max = 0.5},
                                           {.scale_max = 1.5},
                                           {.ratio_min = 0},
                                           {.ratio_min = 2, .ratio_max = 1},
                                           {.ratio_max = 1e9},
                                           {.scale_min = std::nan("")}})
    CHECK_THROWS_AS((void)mr::detail::random_crop_box({.width = 5, .height = 5}, d, o), mr::setup_error);
}
