#include "../../../examples/shapes.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>

namespace mr = millrace;

TEST_CASE("ten consecutive samples contain each class once, in a varying order") {
  std::set<std::string> orders;
  for (std::uint64_t ten = 0; ten < 20; ++ten) {
    std::set<std::int32_t> labels;
    std::string order;
    for (std::uint64_t i = 0; i < 10; ++i) {
      const std::int32_t label = shape_label({.seed = 3, .index = ten * 10 + i});
      labels.insert(label);
      order += std::to_string(label);
    }
    CHECK(labels.size() == 10);
    CHECK(*labels.begin() == 0);
    CHECK(*labels.rbegin() == 9);
    orders.insert(order);
  }
  CHECK(orders.size() > 15);
}

TEST_CASE("a sample depends only on its seed and index") {
  const auto a = make_shape({.seed = 1, .index = 7}), b = make_shape({.seed = 1, .index = 7});
  CHECK(a.jpeg == b.jpeg);
  CHECK(a.label == b.label);
  CHECK(a.jpeg != make_shape({.seed = 1, .index = 8}).jpeg);
  CHECK(a.jpeg != make_shape({.seed = 2, .index = 7}).jpeg);
}

TEST_CASE("images have many sizes, landscape and portrait, and are JPEGs of that size") {
  std::size_t landscape = 0, portrait = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    mr::rng random({.seed = i});
    const auto pixels = draw_shape(static_cast<std::int32_t>(i % 10), random);
    for (const std::size_t d : {0U, 1U}) {
      CHECK(pixels.shape()[d] >= 80);
      CHECK(pixels.shape()[d] <= 200);
    }
    landscape += pixels.shape()[1] > pixels.shape()[0];
    portrait += pixels.shape()[1] < pixels.shape()[0];
  }
  CHECK(landscape > 15);
  CHECK(portrait > 15);
  const auto s = make_shape({.seed = 1, .index = 1});
  CHECK(s.jpeg.size() > 500);
  CHECK(s.jpeg[0] == std::byte{0xff});
  CHECK(s.jpeg[1] == std::byte{0xd8});
}

TEST_CASE("a mask covers the pixels with the shape's color, and the box is its bounding box") {
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto label = static_cast<std::int32_t>(i % 10);
    mr::rng random({.seed = i}), again({.seed = i});
    const drawn_shape labelled = draw_shape_and_mask(label, random);
    CHECK(std::ranges::equal(labelled.pixels.span(), draw_shape(label, again).span()));   // the same random draws
    const auto [height, width, channels] = labelled.pixels.shape();
    REQUIRE(labelled.mask.shape() == std::array<std::size_t, 3>{height, width, 1});
    std::array<std::size_t, 4> bounds{width, height, 0, 0};
    // The shape has one color plus noise. The ground's color differs by at least 130 before waves and noise.
    double sum[3] = {}, inside = 0, strangers = 0;
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x) {
        const int value = labelled.mask(y, x, 0);
        if (value == 0) continue;
        REQUIRE(value == label + 1);
        bounds = {std::min(bounds[0], x), std::min(bounds[1], y), std::max(bounds[2], x + 1),
                  std::max(bounds[3], y + 1)};
        ++inside;
        for (std::size_t c = 0; c < 3; ++c) sum[c] += labelled.pixels(y, x, c);
      }
    CHECK(bounds == labelled.box);
    REQUIRE(inside > 300);
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x) {
        double off = 0;
        for (std::size_t c = 0; c < 3; ++c) off += std::pow(labelled.pixels(y, x, c) - sum[c] / inside, 2);
        strangers += (labelled.mask(y, x, 0) != 0) != (std::sqrt(off) < 65);
      }
    CHECK(strangers < 0.02 * static_cast<double>(width * height));
  }
}

TEST_CASE("all shapes are different and stay within their bounds") {
  constexpr int half = 60;
  for (std::int32_t a = 0; a < 10; ++a)
    for (std::int32_t b = 0; b < 10; ++b) {
      int both = 0, either = 0, outside = 0;
      for (int y = -half; y <= half; ++y)
        for (int x = -half; x <= half; ++x) {
          const double u = 1.25 * x / half, v = 1.25 * y / half;
          const bool in_a = inside_shape(a, u, v), in_b = inside_shape(b, u, v);
          both += in_a && in_b;
          either += in_a || in_b;
          outside += in_a && std::hypot(u, v) > 1.2;
        }
      INFO(shape_names[static_cast<std::size_t>(a)], " and ", shape_names[static_cast<std::size_t>(b)]);
      CHECK(outside == 0);
      if (a == b) CHECK(both > 1'500);
      else CHECK(both < 0.85 * either);
    }
}
