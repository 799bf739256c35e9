// Maps each pixel of a rotated, sheared or translated image to its source, a point of the original image. The map is
// Pillow's matrix of six numbers.
//
//   const auto map = mr::detail::affine_rotation(9, {.width = 224, .height = 224});   // 9 degrees, counter-clockwise
//   map.x(10.5, 20.5);                                                            // source column of pixel (10, 20)
//
// Points are in pixels; the center of the first pixel is (0.5, 0.5). Rotations are bit-identical to Pillow's.
// Errors: none. Threads: pure functions; any thread.
#pragma once

#include <millrace/base/fixed_point.hpp>
#include <millrace/image/color/unfused.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct affine_map {
  double xx = 1, xy = 0, x0 = 0;   ///< source column: xx * column + xy * row + x0
  double yx = 0, yy = 1, y0 = 0;   ///< source row: yx * column + yy * row + y0

  double x(double column, double row) const noexcept { return unfused(xx * column) + unfused(xy * row) + x0; }
  double y(double column, double row) const noexcept { return unfused(yx * column) + unfused(yy * row) + y0; }
};

struct affine_size {
  std::size_t width = 0, height = 0;
};

/// Rounds a sine or cosine to 15 digits after the decimal point, as Pillow does. Ties round to the even digit.
inline double affine_text(double value) noexcept {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);   // exact; the multiplication below is exact, too
  const auto mantissa = static_cast<std::int64_t>(std::abs(fraction) * 0x1p53);
  const int shift = 53 - exponent;
  if (shift > 120) return 0;
  const unsigned_128 product = unsigned_128{static_cast<std::uint64_t>(mantissa)} * 1'000'000'000'000'000U;
  const unsigned_128 rest = product & ((unsigned_128{1} << shift) - 1), half = unsigned_128{1} << (shift - 1);
  auto digits = static_cast<std::uint64_t>(product >> shift);
  if (rest > half || (rest == half && digits % 2 != 0)) ++digits;
  const double rounded = static_cast<double>(digits) / 1e15;
  return value < 0 ? -rounded : rounded;
}

/// Returns the map of a rotation by `degrees`, counter-clockwise, around the center.
inline affine_map affine_rotation(double degrees, affine_size size) noexcept {
  double angle = std::fmod(degrees, 360.0);   // exact
  if (angle < 0) angle += 360.0;
  const auto [sine, cosine] = sine_and_cosine_of(angle * 0.017453292519943295);
  affine_map map{
      .xx = affine_text(cosine), .xy = -affine_text(sine), .yx = affine_text(sine), .yy = affine_text(cosine)};
  const double middle = static_cast<double>(size.width) / 2, center = static_cast<double>(size.height) / 2;
  const double x0 = map.x(-middle, -center), y0 = map.y(-middle, -center);
  map.x0 = x0 + middle;
  map.y0 = y0 + center;
  return map;
}

/// Returns the map of a horizontal shear. The sources of each row are `factor` columns further right than those of the
/// row above.
inline affine_map shear_x_of(double factor) noexcept { return {.xy = factor}; }
inline affine_map shear_y_of(double factor) noexcept { return {.yx = factor}; }

/// Returns the map of a translation to the right and down, in pixels.
inline affine_map translation_of(double right, double down) noexcept { return {.x0 = -right, .y0 = -down}; }

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
