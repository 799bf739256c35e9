// Definitions for geometry.hpp.
#pragma once

#include <millrace/image/plan/geometry.hpp>

#include <millrace/base/error.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_RARE void kept_boxes::throw_too_few(std::size_t values, std::size_t index) {
  throw setup_error("box " + std::to_string(index) + " has no value: got " + std::to_string(values) +
                        " values, expected one value for each box",
                    "Pass one value for each box, in the order of the boxes");
}

MILLRACE_INLINE geometry geometry::upright() const noexcept {
  geometry result = *this;
  const int o = std::exchange(result.orientation_, 1);
  auto& [rows, columns, transposed, padding] = result.plan_;
  if (o == 2 || o == 3 || o == 7 || o == 8)
    columns = detail::mirrored_axis(columns, static_cast<std::int64_t>(source_.width));
  if (o == 3 || o == 4 || o == 6 || o == 7)
    rows = detail::mirrored_axis(rows, static_cast<std::int64_t>(source_.height));
  if (o >= 5) {
    std::swap(rows, columns);
    std::swap(result.source_.width, result.source_.height);
    transposed = !transposed;
  }
  return result;
}

MILLRACE_INLINE kept_boxes geometry::boxes(std::span<const box> all, const box_options& options) const {
  if (!(options.min_size >= 0 && options.min_area >= 0))
    throw setup_error("a minimum of box_options is out of range: got min_size " + std::to_string(options.min_size) +
                          " and min_area " + std::to_string(options.min_area) + ", expected 0 or more",
                      "Set box_options::min_size and min_area in pixels of the rendered image");
  struct side {
    double begin, end;
  };
  const auto moved = [](const detail::plan_axis& axis, side s) {
    const auto place = [&](double edge) {
      const double at = detail::edge_on(axis, edge), end = static_cast<double>(axis.extent());
      return at < 0 ? 0.0 : at > end ? end : at;   // NaN stays NaN
    };
    return axis.flipped ? side{place(s.end), place(s.begin)} : side{place(s.begin), place(s.end)};
  };
  kept_boxes result;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const box& b = all[i];
    side x = moved(plan_.columns, {b.left, b.right}), y = moved(plan_.rows, {b.top, b.bottom});
    if (plan_.transposed) std::swap(x, y);
    const double width = x.end - x.begin, height = y.end - y.begin;
    // Negated comparisons would keep boxes with NaN coordinates.
    const bool keeps = width > 0 && height > 0 && width >= options.min_size && height >= options.min_size &&
                       width * height >= options.min_area;
    if (!keeps) continue;
    result.boxes.push_back({.left = x.begin, .top = y.begin, .right = x.end, .bottom = y.end});
    result.indices.push_back(i);
  }
  return result;
}

MILLRACE_INLINE moved_points geometry::points(std::span<const point> all, const point_options& options) const {
  const double to_edges = options.pixel_centers ? 0.5 : 0;
  moved_points result;
  result.points.reserve(all.size());
  result.inside.reserve(all.size());
  for (const point& p : all) {
    double x = detail::edge_on(plan_.columns, p.x + to_edges), y = detail::edge_on(plan_.rows, p.y + to_edges);
    if (plan_.transposed) std::swap(x, y);
    const bool inside = x >= 0 && x < static_cast<double>(width()) && y >= 0 && y < static_cast<double>(height());
    if (options.clamp) {
      x = std::clamp(x, to_edges, static_cast<double>(width()) - to_edges);
      y = std::clamp(y, to_edges, static_cast<double>(height()) - to_edges);
    }
    result.points.push_back({.x = x - to_edges, .y = y - to_edges});
    result.inside.push_back(inside ? 1 : 0);
  }
  return result;
}

namespace detail {

MILLRACE_INLINE plan_axis mirrored_axis(const plan_axis& axis, std::int64_t extent) noexcept {
  plan_axis result = axis;
  result.begin = extent * axis.denominator - axis.begin - axis.length;
  result.clip_begin = extent - axis.clip_end;
  result.clip_end = extent - axis.clip_begin;
  result.first = axis.target - axis.first - axis.count;
  std::swap(result.before, result.after);
  result.flipped = !axis.flipped;
  return result;
}

MILLRACE_INLINE double edge_on(const plan_axis& axis, double edge) noexcept {
  // Explicitly fused, because only some compilers would fuse it.
  const double in_box = __builtin_fma(edge, static_cast<double>(axis.denominator), -static_cast<double>(axis.begin));
  const double output = in_box * static_cast<double>(axis.target) / static_cast<double>(axis.length);
  const double offset = output - static_cast<double>(axis.first - axis.before);
  return axis.flipped ? static_cast<double>(axis.extent()) - offset : offset;
}

MILLRACE_INLINE shown_outputs nearest_pixels(const plan_axis& axis, padding_mode padding,
                                             std::vector<std::uint32_t>& pixels) {
  const std::int64_t extent = axis.extent(), divisor = 2 * axis.target * axis.denominator;
  pixels.resize(static_cast<std::size_t>(extent));
  for (std::int64_t k = 0; k < extent; ++k) {
    const std::int64_t position = (axis.flipped ? extent - 1 - k : k) - axis.before;
    const std::int64_t o = axis.first + padded_pixel(padding, position, axis.count);
    const std::int64_t pixel = (2 * axis.begin * axis.target + (2 * o + 1) * axis.length) / divisor;
    pixels[static_cast<std::size_t>(k)] = static_cast<std::uint32_t>(
        std::clamp(pixel, axis.clip_begin, axis.clip_end - 1));
  }
  if (padding != padding_mode::constant) return {.begin = 0, .end = pixels.size()};
  const auto in_extent = [extent](std::int64_t n) {
    return static_cast<std::size_t>(std::clamp<std::int64_t>(n, 0, extent));
  };
  const std::size_t begin = in_extent(axis.flipped ? axis.after : axis.before);
  return {.begin = begin, .end = std::max(begin, in_extent(extent - (axis.flipped ? axis.before : axis.after)))};
}

}   // namespace detail

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>
