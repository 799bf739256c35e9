// Labelled images without a download: one of ten shapes on a textured background, as a JPEG file.
//
//   labelled_shape s = make_shape({.seed = 1, .index = 42});    // the same on every machine
//   s.jpeg; s.label; shape_names[s.label];                      // bytes, 0..9, "star"
//   s.mask(y, x, 0); s.box;                                     // 0: background, else label + 1; bounds of the shape
//   mr::image pixels = draw_shape(s.label, rng);             // [height, width, 3] u8, before JPEG
//
// Sizes are 80 to 200 pixels, landscape and portrait. Color, size, place, rotation, background, noise, JPEG quality and
// chroma sampling are random. Ten consecutive samples contain each class once, in random order. Coordinates of a shape:
// its center is the origin, its radius about 1, y increases downward.
// Errors: none for labels below 10. Threads: pure.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

inline constexpr std::array<std::string_view, 10> shape_names{"circle", "square",   "triangle", "star",  "cross",
                                                              "ring",   "crescent", "heart",    "arrow", "hourglass"};

/// Returns whether the point (x, y) is inside the shape.
inline bool inside_shape(std::int32_t label, double x, double y) {
  const double r = std::hypot(x, y);
  switch (label) {
    case 0: return r < 0.9;
    case 1: return std::max(std::abs(x), std::abs(y)) < 0.8;
    case 2: return y < 0.7 && y > 1.9 * std::abs(x) - 1.0;
    case 3: {   // five points: in a fifth of the circle, one side of the line from a tip to the next notch
      const double fifth = 2 * std::numbers::pi / 5;
      const double angle = std::atan2(x, -y) + 2 * std::numbers::pi;
      const double off = std::abs(std::remainder(angle, fifth));
      const double notch_x = 0.42 * std::cos(fifth / 2), notch_y = 0.42 * std::sin(fifth / 2);
      const double px = r * std::cos(off), py = r * std::sin(off);
      return (px - 1) * notch_y - py * (notch_x - 1) < 0;
    }
    case 4: return std::min(std::abs(x), std::abs(y)) < 0.28 && std::max(std::abs(x), std::abs(y)) < 0.95;
    case 5: return r < 0.95 && r > 0.55;
    case 6: return r < 0.95 && std::hypot(x - 0.45, y) > 0.75;
    case 7: {   // the curve (x^2 + y^2 - 1)^3 = x^2 y^3, scaled
      const double u = 1.25 * x, v = 0.12 - 1.25 * y, k = u * u + v * v - 1;
      return k * k * k < u * u * v * v * v;
    }
    case 8: return x < 0.1 ? (std::abs(y) < 0.26 && x > -0.95) : x + 1.1 * std::abs(y) < 0.95;
    default: return std::abs(y) < 0.85 && std::abs(x) < 0.15 + 0.75 * std::abs(y);
  }
}

namespace shape_detail {

using color = std::array<double, 3>;

inline color draw_color(millrace::rng& rng) { return {rng.uniform(0, 255), rng.uniform(0, 255), rng.uniform(0, 255)}; }

inline double distance(const color& a, const color& b) { return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); }

/// The background: a gradient between two colors, with waves.
struct ground {
  color from, to;
  double slope_x, slope_y, wave_x, wave_y, phase, contrast;

  explicit ground(millrace::rng& rng) : from(draw_color(rng)), to(from) {
    for (double& c : to) c = std::clamp(c + rng.uniform(-60, 60), 0.0, 255.0);
    const double direction = rng.uniform(0, 2 * std::numbers::pi), length = rng.uniform(4, 30);
    slope_x = rng.uniform(-0.5, 0.5);
    slope_y = rng.uniform(-0.5, 0.5);
    wave_x = std::cos(direction) * 2 * std::numbers::pi / length;
    wave_y = std::sin(direction) * 2 * std::numbers::pi / length;
    phase = rng.uniform(0, 2 * std::numbers::pi);
    contrast = rng.uniform(0, 18);
  }
  color at(double x, double y, double side) const {
    const double mix = std::clamp(0.5 + (slope_x * x + slope_y * y) / side, 0.0, 1.0);
    const double wave = contrast * std::sin(wave_x * x + wave_y * y + phase);
    color c;
    for (std::size_t i = 0; i < 3; ++i) c[i] = from[i] + (to[i] - from[i]) * mix + wave;
    return c;
  }
};

}   // namespace shape_detail

/// An image, and the pixels of its shape.
struct drawn_shape {
  millrace::image pixels{};
  millrace::image mask{};             ///< [height, width, 1]: 0 on the background, else label + 1
  std::array<std::size_t, 4> box{};   ///< left, top, right, bottom of the shape in the mask, at edges of pixels
};

inline drawn_shape draw_shape_and_mask(std::int32_t label, millrace::rng& rng) {
  using namespace shape_detail;
  const auto width = static_cast<std::size_t>(rng.between(80, 200));
  const auto height = static_cast<std::size_t>(
      std::clamp<std::int64_t>(std::llround(static_cast<double>(width) * rng.uniform(0.7, 1.4)), 80, 200));
  const double side = static_cast<double>(std::min(width, height));
  const ground back(rng);
  color paint = draw_color(rng);
  while (distance(paint, back.from) < 130 || distance(paint, back.to) < 130) paint = draw_color(rng);
  const double reach = side * rng.uniform(0.28, 0.42);
  const double center_x = static_cast<double>(width) * 0.5 + side * rng.uniform(-0.08, 0.08);
  const double center_y = static_cast<double>(height) * 0.5 + side * rng.uniform(-0.08, 0.08);
  const double angle = rng.uniform(-0.35, 0.35);   // 20 degrees either way: classes stay distinct
  const double turn_x = std::cos(angle) / reach, turn_y = std::sin(angle) / reach;
  const double noise = rng.uniform(0, 12);

  drawn_shape shape{.pixels = millrace::image({height, width, 3}),
                    .mask = millrace::image({height, width, 1}),
                    .box = {width, height, 0, 0}};
  for (std::size_t row = 0; row < height; ++row)
    for (std::size_t column = 0; column < width; ++column) {
      const double x = static_cast<double>(column) - center_x, y = static_cast<double>(row) - center_y;
      double cover = 0;
      if (std::hypot(x, y) < 1.2 * reach)   // four points of each pixel, for soft edges
        for (int i = 0; i < 4; ++i) {
          const double px = x + (i % 2 ? 0.75 : 0.25), py = y + (i / 2 ? 0.75 : 0.25);
          cover += inside_shape(label, px * turn_x + py * turn_y, py * turn_x - px * turn_y) ? 0.25 : 0;
        }
      if (cover >= 0.5) {
        shape.mask(row, column, std::size_t{0}) = static_cast<std::uint8_t>(label + 1);
        auto& [left, top, right, bottom] = shape.box;
        left = std::min(left, column), top = std::min(top, row);
        right = std::max(right, column + 1), bottom = std::max(bottom, row + 1);
      }
      const color background = back.at(x, y, side);
      const std::uint64_t bits = rng.bits();
      for (std::size_t c = 0; c < 3; ++c) {
        const double grain = (static_cast<double>(bits >> (16 * c) & 0xffff) / 32'768 - 1) * noise;
        const double value = background[c] + (paint[c] - background[c]) * cover + grain;
        shape.pixels(row, column, c) = static_cast<std::uint8_t>(std::clamp(value + 0.5, 0.0, 255.0));
      }
    }
  return shape;
}

/// Returns the pixels of one sample.
inline millrace::image draw_shape(std::int32_t label, millrace::rng& rng) {
  return draw_shape_and_mask(label, rng).pixels;
}

struct shape_key {
  std::uint64_t seed = 0;
  std::uint64_t index = 0;
};

/// Returns a label. Ten consecutive ones contain each class once.
inline std::int32_t shape_label(shape_key key) {
  millrace::rng rng({.seed = key.seed, .sample = key.index / 10, .stage = 1});
  std::array<std::int32_t, 10> order{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (std::size_t i = 9; i > 0; --i) std::swap(order[i], order[rng.below(i + 1)]);
  return order[key.index % 10];
}

struct labelled_shape {
  std::vector<std::byte> jpeg;
  std::int32_t label = 0;
  millrace::image mask{};   ///< as in drawn_shape
  std::array<std::size_t, 4> box{};
};

inline labelled_shape make_shape(shape_key key) {
  using millrace::chroma_sampling;
  millrace::rng rng({.seed = key.seed, .sample = key.index});
  const std::int32_t label = shape_label(key);
  drawn_shape shape = draw_shape_and_mask(label, rng);
  constexpr chroma_sampling samplings[] = {chroma_sampling::yuv420, chroma_sampling::yuv420, chroma_sampling::yuv422,
                                           chroma_sampling::yuv444};
  const auto quality = static_cast<int>(rng.between(80, 95));
  const chroma_sampling sampling = samplings[rng.below(4)];
  const bool progressive = rng.chance(0.1);
  return {millrace::encode_jpeg(shape.pixels, {.quality = quality, .sampling = sampling, .progressive = progressive}),
          label, std::move(shape.mask), shape.box};
}
