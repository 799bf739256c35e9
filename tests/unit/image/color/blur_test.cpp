#include <millrace/image/color/vector_kernels.hpp>
#include <millrace/simd/cpu_features.hpp>

#include "../../../thorough.hpp"
#include "slow_operations.hpp"

#include <doctest/doctest.h>

#include <numeric>

namespace {

namespace mr = millrace;

mr::detail::rgb_pixels pixels_of(slow::picture& p) {
  return {.data = p.data.data(), .width = p.width, .height = p.height};
}

template <class Kernels>
void check_gaussian() {
  mr::detail::gaussian_blur<Kernels> blur;
  for (const slow::picture& from : slow::pictures())
    for (const std::pair<int, double>& kernel : some<std::pair<int, double>>(2, {
             {3, 0.8}, {1, 1.0}, {5, 0.1}, {9, 0.3}, {7, 3.0}, {9, 1.2}, {23, 2.0}, {23, 0.5}, {9, 2.0}, {41, 30.0}})) {
      const int size = kernel.first;
      const double sigma = kernel.second;
      CAPTURE(from.width);
      CAPTURE(from.height);
      CAPTURE(size);
      CAPTURE(sigma);
      const auto weights = mr::detail::gaussian_weights_of(static_cast<std::size_t>(size), sigma);
      slow::picture p = from, expected = from;
      if (!weights.empty()) slow::integer_blur(expected, weights);
      blur.run(pixels_of(p), weights);
      CHECK(p == expected);
    }
}

template <class Kernels>
void check_boxes() {
  mr::detail::box_blur<Kernels> blur;
  for (const slow::picture& from : slow::pictures())
    for (const double sigma : some(3, {0.0, 1e-4, 0.1, 0.3, 0.5, 1.0, 1.37, 2.0, 5.0, 11.0, 50.0, 140.0})) {
      CAPTURE(from.width);
      CAPTURE(from.height);
      CAPTURE(sigma);
      slow::picture expected = from, p = from;
      slow::pillow_blur(expected, sigma);
      blur.run(pixels_of(p), mr::detail::box_weights_of(sigma));
      CHECK(p == expected);
    }
}

}  // namespace

TEST_CASE("Pillow's blur is six passes of a box with fractional ends") {
  check_boxes<mr::detail::portable_boxes>();
#if defined __x86_64__ || defined __aarch64__
  if (mr::detail::cpu_has_word_layer()) check_boxes<mr::detail::word_layer::boxes>();
#endif
}

TEST_CASE("torchvision's blur has integer weights, first along columns, then along rows") {
  check_gaussian<mr::detail::portable_gaussian>();
#if defined __x86_64__ || defined __aarch64__
  if (mr::detail::cpu_has_word_layer()) check_gaussian<mr::detail::word_layer::gaussian>();
#endif
}

TEST_CASE("torchvision's blur is within a level of the sum that torchvision rounds") {
  mr::detail::gaussian_blur<mr::detail::portable_gaussian> blur;
  double worst = 0;
  for (const slow::picture& from : slow::pictures())
    for (const auto& [size, sigma] : {std::pair{3, 0.8}, {9, 0.1}, {9, 2.0}, {23, 1.3}, {23, 6.0}}) {
      slow::picture p = from;
      blur.run(pixels_of(p), mr::detail::gaussian_weights_of(static_cast<std::size_t>(size), sigma));
      for (std::size_t y = 0; y < p.height; y += 3)
        for (std::size_t x = 0; x < p.width; x += 2) {
          const double real = slow::gaussian_at(from, static_cast<int>(x), static_cast<int>(y), 1, size, sigma);
          worst = std::max(worst, std::abs(real - p.at(x, y, 1)));
        }
    }
  MESSAGE("at most ", worst, " levels from the real number");
  CHECK(worst < 0.53);   // therefore the rounded real number differs by at most one level
}

TEST_CASE("weights of torchvision's blur sum to one, and are those of a Gaussian") {
  for (std::size_t size = 1; size < 200; size += 2)
    for (const double sigma : {0.05, 0.1, 0.5, 1.0, 2.0, 7.0, 100.0}) {
      const auto w = mr::detail::gaussian_weights_of(size, sigma);
      if (w.empty()) continue;
      CHECK(w.size() == size / 2 + 1);
      CHECK(2 * std::accumulate(w.begin() + 1, w.end(), 0) + w[0] == 32'768);
      double total = 1;
      for (std::size_t d = 1; d <= size / 2; ++d)
        total += 2 * std::exp(-static_cast<double>(d * d) / (2 * sigma * sigma));
      for (std::size_t d = 0; d <= size / 2; ++d) {
        const double real = 32'768 * std::exp(-static_cast<double>(d * d) / (2 * sigma * sigma)) / total;
        CHECK(std::abs(w[d] - real) < 1.6);
      }
    }
}

TEST_CASE("a blur keeps constant images, and a tiny sigma keeps all") {
  for (const int value : {0, 1, 128, 255}) {
    slow::picture from(30, 20);
    std::fill(from.data.begin(), from.data.end(), static_cast<std::uint8_t>(value));
    slow::picture p = from;
    mr::detail::gaussian_blur<mr::detail::portable_gaussian>().run(pixels_of(p),
                                                                   mr::detail::gaussian_weights_of(23, 3));
    CHECK(p == from);
  }
  // An image of one pixel is mirrored to a constant one; rounded products may not add up to more.
  for (const auto& [size, sigma] : {std::pair{3, 0.8}, {9, 0.3}, {9, 2.0}, {23, 1.3}, {41, 30.0}, {199, 7.0},
                                     {199, 60.0}})
    for (int value = 0; value < 256; ++value) {
      slow::picture p(1, 1);
      std::fill(p.data.begin(), p.data.end(), static_cast<std::uint8_t>(value));
      mr::detail::gaussian_blur<mr::detail::portable_gaussian>().run(
          pixels_of(p), mr::detail::gaussian_weights_of(static_cast<std::size_t>(size), sigma));
      CHECK(p.data[0] == value);
    }
  CHECK(mr::detail::gaussian_weights_of(9, 1e-9).empty());
  CHECK(mr::detail::gaussian_weights_of(9, 1e-200).empty());
  CHECK(mr::detail::box_weights_of(0).changes_nothing());
}
