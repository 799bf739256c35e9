// Transforms the pixels of an image in place by an affine map. The result equals that of Pillow's transform().
//
//   mr::detail::warp<mr::detail::portable_warping> w;    // reused for all images
//   w.run(pixels, mr::detail::shear_x_of(0.3), mr::detail::warp_filter::nearest, {124, 116, 104});
//
// The source of a pixel is the point to which the map moves the pixel's center. Pixels whose source is outside the
// image get the fill color. The filter is one of these:
// - nearest: copies the pixel that contains the source. Without rotation and shear, sources are computed incrementally
//   in double. Otherwise, sources are computed in fixed point with 16 fraction bits if they fit, else in double.
// - bilinear, bicubic: see warp_kernels.hpp, or axis_warp.hpp for maps along one axis.
//
// Errors: throws std::bad_alloc. Threads: not thread-safe; one thread at a time.
#pragma once

#include <millrace/image/color/photometric_op.hpp>
#include <millrace/image/color/rgb_pixels.hpp>
#include <millrace/image/warp/affine_map.hpp>
#include <millrace/image/warp/axis_warp.hpp>
#include <millrace/image/warp/warp_kernels.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class Kernels>
class warp {
 public:
  void run(const rgb_pixels& p, const affine_map& map, warp_filter filter, const rgb_color& fill) {
    if (p.count() == 0) return;
    source_.assign(p.data, p.data + p.bytes());
    source_.resize(p.bytes() + 7);   // ten bytes must be readable at the last pixel
    from_ = warp_source{.data = source_.data(),
                        .width = static_cast<std::ptrdiff_t>(p.width),
                        .height = static_cast<std::ptrdiff_t>(p.height)};
    fill_ = fill;
    const bool scales = map.xy == 0 && map.yx == 0;
    // If the map moves all pixels by an integer distance, every filter only copies pixels.
    if (scales && moves_by_pixels(map.xx, map.x0) && moves_by_pixels(map.yy, map.y0)) run_scaled(p, map);
    else if (filter != warp_filter::nearest) run_between(p, map, filter);
    else if (scales) run_scaled(p, map);
    else if (fits(map, p)) run_fixed(p, map);
    else run_wide(p, map);
  }

 private:
  static double real(std::size_t n) noexcept { return static_cast<double>(n); }

  static bool moves_by_pixels(double scale, double distance) noexcept {
    return scale == 1 && distance == std::trunc(distance);
  }

  void run_between(const rgb_pixels& p, const affine_map& map, warp_filter filter) {
    if (along_axis_.run(from_, p, map, filter, fill_)) return;
    const auto kernel = filter == warp_filter::bicubic ? Kernels::bicubic : Kernels::bilinear;
    for (std::size_t y = 0; y < p.height; ++y)
      kernel({.source = from_, .map = map, .middle = real(y) + 0.5, .end = p.width, .to = p.row(y), .fill = fill_});
  }

  /// Adjacent columns of the result whose sources are adjacent columns.
  struct run_of_columns {
    std::size_t begin, from, count;
  };

  /// Applies a map without rotation and shear. Each row of the result has one source row, and all rows have the same
  /// source columns.
  void run_scaled(const rgb_pixels& p, const affine_map& map) {
    const auto next_place = [](double& at, double step, std::size_t limit) {
      const std::ptrdiff_t place = at >= 0 && at < real(limit) ? static_cast<std::ptrdiff_t>(at) : -1;
      at += step;
      return place;
    };
    runs_.clear();
    double column = map.x0 + map.xx * 0.5, row = map.y0 + map.yy * 0.5;
    for (std::size_t x = 0; x < p.width; ++x) {
      const std::ptrdiff_t place = next_place(column, map.xx, p.width);
      if (place < 0) continue;
      const auto from = static_cast<std::size_t>(place);
      const bool extends = !runs_.empty() && runs_.back().begin + runs_.back().count == x &&
                           runs_.back().from + runs_.back().count == from;
      if (extends) ++runs_.back().count;
      else runs_.push_back({.begin = x, .from = from, .count = 1});
    }
    for (std::size_t y = 0; y < p.height; ++y) {
      const std::ptrdiff_t place = next_place(row, map.yy, p.height);
      std::size_t done = 0;
      for (const run_of_columns& run : runs_) {
        if (place < 0) break;
        fill_pixels(p.row(y) + 3 * done, run.begin - done, fill_);
        std::memcpy(p.row(y) + 3 * run.begin, from_.at(static_cast<std::ptrdiff_t>(run.from), place), 3 * run.count);
        done = run.begin + run.count;
      }
      fill_pixels(p.row(y) + 3 * done, p.width - done, fill_);
    }
  }

  static bool fits(const affine_map& map, const rgb_pixels& p) noexcept {
    for (const double x : {0.0, real(p.width)})
      for (const double y : {0.0, real(p.height)})
        if (!(std::abs(map.x(x, y)) < 32'768 && std::abs(map.y(x, y)) < 32'768)) return false;
    return true;
  }

  static std::int64_t fixed(double value) noexcept {
    return static_cast<std::int64_t>(std::floor(value * 65'536 + 0.5));
  }

  struct interval {
    std::int64_t begin, end;
  };

  /// Returns the part of the interval `all` with the numbers i for which at + i * step is in [0, limit).
  static interval inside(interval all, std::int64_t at, std::int64_t step, std::int64_t limit) noexcept {
    const auto rounded_up = [](std::int64_t a, std::int64_t b) { return a <= 0 ? -(-a / b) : (a + b - 1) / b; };
    if (step == 0) return at >= 0 && at < limit ? all : interval{all.begin, all.begin};
    const std::int64_t begin = step > 0 ? rounded_up(-at, step) : rounded_up(at - limit + 1, -step);
    const std::int64_t end = step > 0 ? rounded_up(limit - at, step) : rounded_up(at + 1, -step);
    const std::int64_t first = std::clamp(begin, all.begin, all.end);
    return {first, std::max(first, std::min(end, all.end))};
  }

  void run_fixed(const rgb_pixels& p, const affine_map& map) const noexcept {
    const std::int64_t xx = fixed(map.xx), xy = fixed(map.xy), yx = fixed(map.yx), yy = fixed(map.yy);
    std::int64_t x = fixed(map.x0 + map.xx * 0.5 + map.xy * 0.5), y = fixed(map.y0 + map.yx * 0.5 + map.yy * 0.5);
    const auto width = static_cast<std::int64_t>(p.width), height = static_cast<std::int64_t>(p.height);
    for (std::size_t row = 0; row < p.height; ++row, x += xy, y += yy) {
      const interval covered = inside(inside({0, width}, x, xx, width << 16), y, yx, height << 16);
      std::uint8_t* const to = p.row(row);
      fill_pixels(to, static_cast<std::size_t>(covered.begin), fill_);
      if (covered.end > covered.begin) copy_line(to, covered, {x, xx, y, yx});
      fill_pixels(to + 3 * covered.end, static_cast<std::size_t>(width - covered.end), fill_);
    }
  }

  struct fixed_line {
    std::int64_t x, x_step, y, y_step;   // source of the row's first pixel, with 16 fraction bits
  };

  /// Copies four bytes per pixel. For the last pixel, copies only three bytes, because it may be the image's last
  /// pixel.
  void copy_line(std::uint8_t* row, interval covered, const fixed_line& line) const noexcept {
    std::int64_t x = line.x + covered.begin * line.x_step, y = line.y + covered.begin * line.y_step;
    const auto pixel = [&] { return from_.data + ((y >> 16) * from_.width + (x >> 16)) * 3; };
    std::uint8_t* to = row + 3 * covered.begin;
    if (line.x_step == 1 << 16 && line.y_step == 0) {
      std::memcpy(to, pixel(), static_cast<std::size_t>(covered.end - covered.begin) * 3);
      return;
    }
    for (std::uint8_t* const last = row + 3 * (covered.end - 1); to != last; to += 3) {
      std::memcpy(to, pixel(), 4);
      x += line.x_step;
      y += line.y_step;
    }
    std::memcpy(to, pixel(), 3);
  }

  /// Applies a map whose coordinates exceed the range of the fixed-point numbers.
  void run_wide(const rgb_pixels& p, const affine_map& map) const noexcept {
    double first_x = map.x0 + map.xy * 0.5 + map.xx * 0.5, first_y = map.y0 + map.yy * 0.5 + map.yx * 0.5;
    for (std::size_t row = 0; row < p.height; ++row, first_x += map.xy, first_y += map.yy) {
      double x = first_x, y = first_y;
      for (std::size_t column = 0; column < p.width; ++column, x += map.xx, y += map.yx) {
        const bool is_inside = x >= 0 && x < real(p.width) && y >= 0 && y < real(p.height);
        const std::uint8_t* const pixel = is_inside
                                              ? from_.at(static_cast<std::ptrdiff_t>(x), static_cast<std::ptrdiff_t>(y))
                                              : fill_.data();
        std::memcpy(p.row(row) + 3 * column, pixel, 3);
      }
    }
  }

  std::vector<std::uint8_t> source_;
  std::vector<run_of_columns> runs_;
  axis_warp<Kernels> along_axis_;
  warp_source from_;
  rgb_color fill_{};
};

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
