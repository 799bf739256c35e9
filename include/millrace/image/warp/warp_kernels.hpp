// Computes the pixels of a transformed image one by one, by interpolation, as Pillow's transform() does.
//
//   const mr::detail::warp_line line{.source = from, .map = map, .middle = 20.5, .end = 224, .to = row, .fill = fill};
//   mr::detail::portable_warping::bilinear(line);
//
// Values are computed in double and truncated. Neighbors beyond the image's boundary are copies of the outermost
// pixels. The bicubic kernel has a = -1, as in Pillow's transform(). Pillow's resize() has another kernel, with a =
// -0.5.
// Errors: none. Threads: any thread, if no two calls share pixels.
#pragma once

#include <millrace/image/color/photometric_op.hpp>
#include <millrace/image/warp/affine_map.hpp>
#include <millrace/image/warp/axis_taps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// An image to read from. At the address of every pixel, at least ten bytes must be readable.
struct warp_source {
  const std::uint8_t* data = nullptr;
  std::ptrdiff_t width = 0, height = 0;

  /// Returns the pixel at this position, or the nearest pixel if the position is outside the image.
  const std::uint8_t* at(std::ptrdiff_t x, std::ptrdiff_t y) const noexcept {
    const auto inside = [](std::ptrdiff_t place, std::ptrdiff_t count) {
      return std::clamp<std::ptrdiff_t>(place, 0, count - 1);
    };
    return data + (inside(y, height) * width + inside(x, width)) * 3;
  }
};

/// A point of an image: a pixel, and the distance of the point from that pixel's center.
struct warp_point {
  std::ptrdiff_t x = 0, y = 0;
  double dx = 0, dy = 0;
};

/// The pixels to compute in one row of the result.
struct warp_line {
  const warp_source& source;
  const affine_map& map;
  double middle = 0.5;              ///< y coordinate of the row's pixel centers
  std::size_t begin = 0, end = 0;   ///< columns to compute
  std::uint8_t* to = nullptr;       ///< the row's first pixel
  const rgb_color& fill;
};

/// Returns the first column for which reached(column) is true, or the end of the line. reached() must stay true for all
/// later columns. `guess` is an estimate of the result.
template <class Reached>
std::size_t first_column(const warp_line& line, double guess, const Reached& reached) noexcept {
  if (line.begin == line.end || reached(line.begin)) return line.begin;
  if (!reached(line.end - 1)) return line.end;
  const auto first = static_cast<double>(line.begin), end = static_cast<double>(line.end);
  std::size_t column = guess > first ? static_cast<std::size_t>(std::min(guess, end)) : line.begin;
  while (column > line.begin && reached(column - 1)) --column;
  while (!reached(column)) ++column;
  return column;
}

/// Restricts the line to columns whose source points are inside the image on one axis. `step` is the distance between
/// the source points of two adjacent columns.
template <class Place>
void keep_inside_source(warp_line& line, double step, std::ptrdiff_t limit, const Place& place) noexcept {
  const auto end = static_cast<double>(limit);
  const auto enters = [&](std::size_t column) { return step < 0 ? place(column) < end : place(column) >= 0; };
  const auto leaves = [&](std::size_t column) { return step < 0 ? !(place(column) >= 0) : !(place(column) < end); };
  const auto column_of = [&](double at) { return (at - place(0)) / step; };
  const std::size_t last = first_column(line, column_of(step < 0 ? 0 : end), leaves);
  line.begin = first_column(line, column_of(step < 0 ? end : 0), enters);
  line.end = std::max(line.begin, last);
}

/// Restricts the line to columns whose source points are inside the image.
inline void keep_inside_source(warp_line& line) noexcept {
  const auto middle = [](std::size_t column) { return static_cast<double>(column) + 0.5; };
  keep_inside_source(line, line.map.xx, line.source.width,
                     [&](std::size_t column) { return line.map.x(middle(column), line.middle); });
  keep_inside_source(line, line.map.yx, line.source.height,
                     [&](std::size_t column) { return line.map.y(middle(column), line.middle); });
}

/// Calls pixel(point, to) for each pixel in [begin, end) that has its source inside the image. Fills all other pixels.
/// Always inlined, so that the compiler uses the instruction set of the caller.
template <class Pixel>
MILLRACE_ALWAYS_INLINE inline void for_each_point(const warp_line& line, std::size_t begin, std::size_t end,
                                                  const Pixel& pixel) noexcept {
  const auto width = static_cast<double>(line.source.width), height = static_cast<double>(line.source.height);
  std::uint8_t* to = line.to + 3 * begin;
  for (std::size_t column = begin; column < end; ++column, to += 3) {
    const double middle = static_cast<double>(column) + 0.5;
    const double x = line.map.x(middle, line.middle), y = line.map.y(middle, line.middle);
    if (!(x >= 0 && x < width && y >= 0 && y < height)) {
      std::memcpy(to, line.fill.data(), 3);
      continue;
    }
    const double from_x = x - 0.5, from_y = y - 0.5;
    const std::ptrdiff_t left = from_x < 0 ? -1 : static_cast<std::ptrdiff_t>(from_x);
    const std::ptrdiff_t top = from_y < 0 ? -1 : static_cast<std::ptrdiff_t>(from_y);
    pixel(
        warp_point{
            .x = left, .y = top, .dx = from_x - static_cast<double>(left), .dy = from_y - static_cast<double>(top)},
        to);
  }
}

struct portable_warping {
  using along_axis = portable_axis_taps;

  static void bilinear(const warp_line& line) noexcept {
    for_each_point(line, line.begin, line.end, [&](const warp_point& p, std::uint8_t* to) {
      for (std::size_t c = 0; c < 3; ++c) {
        double rows[2];
        for (std::ptrdiff_t k = 0; k < 2; ++k) {
          const double left = line.source.at(p.x, p.y + k)[c], right = line.source.at(p.x + 1, p.y + k)[c];
          rows[k] = left + unfused((right - left) * p.dx);
        }
        to[c] = static_cast<std::uint8_t>(rows[0] + unfused((rows[1] - rows[0]) * p.dy));
      }
    });
  }

  static void bicubic(const warp_line& line) noexcept {
    for_each_point(line, line.begin, line.end, [&](const warp_point& p, std::uint8_t* to) {
      for (std::size_t c = 0; c < 3; ++c) {
        double rows[4];
        for (std::ptrdiff_t k = 0; k < 4; ++k) {
          double values[4];
          for (std::ptrdiff_t i = 0; i < 4; ++i) values[i] = line.source.at(p.x + i - 1, p.y + k - 1)[c];
          rows[k] = cubic(values, p.dx);
        }
        const double value = cubic(rows, p.dy);
        to[c] = static_cast<std::uint8_t>(value <= 0 ? 0 : value >= 255 ? 255 : value);
      }
    });
  }

 private:
  static double cubic(const double (&v)[4], double d) noexcept {
    const double slope = v[2] - v[0], bend = 2 * (v[0] - v[1]) + v[2] - v[3], twist = v[1] - v[0] - v[2] + v[3];
    return v[1] + unfused(d * (slope + unfused(d * (bend + unfused(d * twist)))));
  }
};

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
