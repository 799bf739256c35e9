// Computes which pixels of the source a plan uses, before any table of weights is made.
//
//   const mr::detail::plane_box box = mr::detail::source_box(plan, {.width = 500, .height = 375});
//   decode rows box.top .. box.bottom, columns box.left .. box.right
//   const mr::detail::source_span s = mr::detail::span_of(plan.columns);     // the pixels that tap_table::build() uses
//
// The box includes one pixel more on each side, which the upsampling of chroma uses. Units: pixels of the stored
// picture. Errors: none. Threads: pure. Source of the rule: tap_table.hpp, solved for its first and its last output.
#pragma once

#include <millrace/image/resize/resize_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Pixels [begin, end) of one axis.
struct source_span {
  std::size_t begin = 0, end = 0;
};

/// Rows [top, bottom) and columns [left, right) of the stored picture.
struct plane_box {
  std::size_t left = 0, top = 0, right = 0, bottom = 0;
};

struct plane_size {
  std::size_t width = 0, height = 0;
};

/// Returns the pixels that have a weight for any output of the axis.
constexpr source_span span_of(const plan_axis& axis) noexcept {
  const auto floor_of = [](std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
  const std::int64_t step = axis.denominator * axis.target;   // half a source pixel
  const std::int64_t reach = 2 * std::max(axis.length, step);
  const auto centre = [&](std::int64_t o) { return (2 * o + 1) * axis.length + 2 * axis.begin * axis.target; };
  // Pixel i has a weight for an output if (2 i + 1) * step is less than `reach` away from the output's center.
  const std::int64_t begin = floor_of(centre(axis.first) - reach - step, 2 * step) + 1;
  const std::int64_t last = axis.first + axis.count - 1;
  const std::int64_t end = -floor_of(step - centre(last) - reach, 2 * step);
  return {.begin = static_cast<std::size_t>(std::clamp(begin, axis.clip_begin, axis.clip_end - 1)),
          .end = static_cast<std::size_t>(std::clamp(end, axis.clip_begin + 1, axis.clip_end))};
}

/// Returns the pixels to decode for a plan, with the extra pixel on each side, clipped to the picture.
constexpr plane_box source_box(const resize_plan& plan, const plane_size& image) noexcept {
  const source_span across = span_of(plan.columns), down = span_of(plan.rows);
  const auto before = [](std::size_t x) { return x == 0 ? x : x - 1; };
  return {.left = before(across.begin), .top = before(down.begin),
          .right = std::min(across.end + 1, image.width), .bottom = std::min(down.end + 1, image.height)};
}

}}}  // namespace millrace::detail
