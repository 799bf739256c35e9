#include <millrace/image/warp/warp.hpp>
#include <millrace/image/warp/vector_warping.hpp>
#include <millrace/simd/cpu_features.hpp>

#include "../../../thorough.hpp"
#include "../color/slow_colors.hpp"

#include <doctest/doctest.h>

namespace {

namespace mr = millrace;
using mr::detail::affine_map;
using mr::detail::warp_filter;

slow::matrix numbers_of(const affine_map& m) { return {m.xx, m.xy, m.x0, m.yx, m.yy, m.y0}; }

std::vector<affine_map> maps_for(const slow::picture& p) {
  std::vector<affine_map> maps;
  for (const double degrees : {0.0, 9.0, -9.0, 17.0, 30.0, 45.0, 90.0, -90.0, 135.0, 180.0, 270.0, 359.0, 1e-3, 725.0})
    maps.push_back(mr::detail::affine_rotation(degrees, {.width = p.width, .height = p.height}));
  for (const double f : {0.09, -0.09, 0.3, -0.99, 1.0, 0.0}) {
    maps.push_back(mr::detail::shear_x_of(f));
    maps.push_back(mr::detail::shear_y_of(f));
  }
  for (const double d : {0.0, 1.0, -3.0, 30.0, 30.45, -0.5, 0.25, 1000.0, -1e-17}) {
    maps.push_back(mr::detail::translation_of(d, 0));
    maps.push_back(mr::detail::translation_of(0, d));
  }
  maps.push_back({.xx = 0.7, .xy = 0, .x0 = 1.3, .yx = 0, .yy = 1.9, .y0 = -2.1});
  maps.push_back({.xx = -1.3, .xy = 0.2, .x0 = 40, .yx = -0.4, .yy = 0.1, .y0 = 12.5});
  maps.push_back({.xx = 0, .xy = 0.5, .x0 = 0.25, .yx = 0, .yy = 0, .y0 = 1});
  return maps;
}

template <class Kernels>
void check_warps() {
  mr::detail::warp<Kernels> w;
  for (const slow::picture& from : slow::pictures()) {
    const std::vector<affine_map> maps = maps_for(from);
    for (std::size_t i = from.width % stride(3); i < maps.size(); i += stride(3)) {
      const affine_map& map = maps[i];
      CAPTURE(from.width);
      CAPTURE(from.height);
      CAPTURE(map.xx);
      CAPTURE(map.xy);
      CAPTURE(map.x0);
      CAPTURE(map.yx);
      CAPTURE(map.y0);
      const auto warped = [&](warp_filter filter) {
        slow::picture p = from;
        w.run({.data = p.data.data(), .width = p.width, .height = p.height}, map, filter, {1, 2, 250});
        return p;
      };
      slow::picture expected = from;
      slow::nearest(expected, numbers_of(map), {1, 2, 250});
      CHECK(warped(warp_filter::nearest) == expected);
      expected = from;
      slow::smooth_warp(expected, numbers_of(map), false, {1, 2, 250});
      CHECK(warped(warp_filter::bilinear) == expected);
      expected = from;
      slow::smooth_warp(expected, numbers_of(map), true, {1, 2, 250});
      CHECK(warped(warp_filter::bicubic) == expected);
    }
  }
}

/// Random values, or few of them: then many neighbors are equal, and many results are integers.
slow::picture picture_for_axis(std::uint64_t seed, mr::rng& random) {
  const auto side = [&] { return 1 + random.below(random.chance(0.2) ? 4 : 90); };
  const std::size_t width = side();
  slow::picture p = slow::random_picture(width, side(), seed);
  if (random.chance(0.5))
    for (auto& byte : p.data) byte = byte < 128 ? 255 : byte < 240 ? 254 : 0;
  return p;
}

/// Integers, halves, numbers close to them, and any others.
double distance_for_axis(double most, mr::rng& random) {
  const double any = random.uniform(-most, most);
  const double near = std::floor(any) + 0.5 * static_cast<double>(random.below(2));
  switch (random.below(5)) {
    case 0: return near;
    case 1: return near + 2e-6 * random.uniform(-1, 1);
    case 2: return near + 1e-14 * random.uniform(-1, 1);
    default: return any;
  }
}

/// Compares images that move along one axis, or are turned, with the kernel for any pixel, row by row.
template <class Kernels>
void check_axes() {
  mr::rng random({.seed = 5});
  mr::detail::warp<Kernels> w;
  for (std::uint64_t i = 0; i < 3'000 / stride(6); ++i) {
    const slow::picture from = picture_for_axis(i, random);
    const auto most = static_cast<double>(std::max(from.width, from.height) + 3);
    affine_map map;
    switch (random.below(6)) {
      case 0: map = mr::detail::shear_x_of(distance_for_axis(random.chance(0.5) ? 0.3 : most, random)); break;
      case 1: map = mr::detail::shear_y_of(distance_for_axis(random.chance(0.5) ? 0.3 : most, random)); break;
      case 2: map = mr::detail::translation_of(distance_for_axis(most, random), 0); break;
      case 3: map = mr::detail::translation_of(0, distance_for_axis(most, random)); break;
      case 4: map = mr::detail::translation_of(random.uniform(-3, 3), random.uniform(-3, 3)); break;
      default:
        map = mr::detail::affine_rotation(random.uniform(-360, 360), {.width = from.width, .height = from.height});
    }
    const mr::detail::rgb_color fill{1, 2, 250};
    for (const warp_filter filter : {warp_filter::bilinear, warp_filter::bicubic}) {
      CAPTURE(i);
      CAPTURE(static_cast<int>(filter));
      slow::picture result = from, expected = from;
      std::vector<std::uint8_t> readable = from.data;
      readable.resize(readable.size() + 7);
      const mr::detail::warp_source source{.data = readable.data(),
                                           .width = static_cast<std::ptrdiff_t>(from.width),
                                           .height = static_cast<std::ptrdiff_t>(from.height)};
      for (std::size_t y = 0; y < from.height; ++y) {
        const mr::detail::warp_line line{
            .source = source, .map = map, .middle = static_cast<double>(y) + 0.5, .end = from.width,
            .to = expected.data.data() + 3 * y * from.width, .fill = fill};
        filter == warp_filter::bicubic ? mr::detail::portable_warping::bicubic(line)
                                       : mr::detail::portable_warping::bilinear(line);
      }
      w.run({.data = result.data.data(), .width = result.width, .height = result.height}, map, filter, fill);
      CHECK(result == expected);
    }
  }
}

}  // namespace

TEST_CASE("images that move along one axis have the pixels of those that move in any way") {
  check_axes<mr::detail::portable_warping>();
#if defined __x86_64__ || defined __aarch64__
  if (mr::detail::cpu_has_word_layer()) check_axes<mr::detail::word_layer::warping>();
#endif
}

TEST_CASE("pixels of rotated, sheared and moved images are read from the positions of Pillow") {
  check_warps<mr::detail::portable_warping>();
#if defined __x86_64__ || defined __aarch64__
  if (mr::detail::cpu_has_word_layer()) check_warps<mr::detail::word_layer::warping>();
#endif
}

TEST_CASE("rotations have the values of cosine and sine") {
  mr::rng random({.seed = 1});
  for (int i = 0; i < 5'000; ++i) {
    const double degrees = i < 361 ? i : random.uniform(-720, 720);
    const slow::matrix expected = slow::rotation(degrees, 224, 160);
    const slow::matrix got = numbers_of(mr::detail::affine_rotation(degrees, {.width = 224, .height = 160}));
    CAPTURE(degrees);
    for (std::size_t k = 0; k < 6; ++k) CHECK(std::abs(got[k] - expected[k]) <= (k % 3 == 2 ? 1e-12 : 1.1e-15));
  }
  const auto quarter = mr::detail::affine_rotation(90, {.width = 6, .height = 4});
  CHECK(quarter.xx == 0);
  CHECK(quarter.xy == -1);
  CHECK(mr::detail::affine_rotation(30, {.width = 6, .height = 4}).yx == 0.5);
}

TEST_CASE("numbers are rounded to 15 digits") {
  CHECK(mr::detail::affine_text(0) == 0);
  CHECK(mr::detail::affine_text(1) == 1);
  CHECK(mr::detail::affine_text(-1) == -1);
  CHECK(mr::detail::affine_text(6.123233995736766e-17) == 0);
  CHECK(mr::detail::affine_text(1e-300) == 0);
  CHECK(mr::detail::affine_text(0.86602540378443864676) == 0.866025403784439);
  CHECK(mr::detail::affine_text(-0.98768834059513777) == -0.987688340595138);
}

TEST_CASE("a map that exceeds fixed point is followed in double") {
  const slow::picture from = slow::random_picture(40'000, 2, 3);
  slow::picture p = from;
  mr::detail::warp<mr::detail::portable_warping> w;
  w.run({.data = p.data.data(), .width = p.width, .height = p.height}, {.xx = 1, .xy = 0.5, .x0 = 1},
        warp_filter::nearest, {9, 9, 9});
  bool equal = true;
  for (std::size_t y = 0; y < 2; ++y)
    for (std::size_t x = 0; x < p.width; ++x) {
      const std::size_t source = x + 1 + y;   // (x + 0.5, y + 0.5) is read from x + 1.75 + y / 2
      equal = equal && p.at(x, y, 0) == (source < p.width ? from.at(source, y, 0) : 9);
    }
  CHECK(equal);
}
