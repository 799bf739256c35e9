// Definitions for picture_grid.hpp.
#pragma once

#include <millrace/train/picture_grid.hpp>

#include <millrace/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::array<std::uint8_t, 3> class_color(std::uint8_t label) noexcept {
  std::array<unsigned, 3> color{};
  for (unsigned bit = 0; bit < 8; ++bit) color[bit % 3] |= (label >> bit & 1U) << (7 - bit / 3);
  return {static_cast<std::uint8_t>(color[0]), static_cast<std::uint8_t>(color[1]),
          static_cast<std::uint8_t>(color[2])};
}

MILLRACE_INLINE void convert_grid_to_rgb(image& grid) {
  const auto [height, width, channels] = grid.shape();
  if (channels == 3) return;
  image colored({height, width, 3});
  for (std::size_t i = 0; i < grid.size(); ++i) std::fill_n(colored.data() + 3 * i, 3, grid.data()[i]);
  grid = std::move(colored);
}

MILLRACE_INLINE void blend_picture_masks(image& grid, const grid_layout& layout,
                                         const tensor_view<const std::uint8_t, 3>& masks) {
  if (masks.shape != std::array{layout.rows, layout.height, layout.width})
    throw setup_error("the masks of a grid, '" + std::string(masks.name) + "', have the shape " +
                          to_string(masks.shape) + ", expected [" + std::to_string(layout.rows) + ", " +
                          std::to_string(layout.height) + ", " + std::to_string(layout.width) +
                          "], the shape of the images",
                      "Render masks and images with one geometry, and use both from the same batch");
  const std::uint8_t* label = masks.host().data();
  for (std::size_t i = 0; i < layout.count; ++i)
    for (std::size_t y = 0; y < layout.height; ++y) {
      std::uint8_t* to = &grid(layout.top(i) + y, layout.left(i), std::size_t{0});
      for (std::size_t x = 0; x < layout.width; ++x, ++label, to += 3) {
        if (*label == 0) continue;
        const auto color = class_color(*label);
        for (std::size_t c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>((to[c] + color[c] + 1) / 2);
      }
    }
}

MILLRACE_INLINE void outline_boxes(image& grid, const grid_layout& layout, const grid_boxes& boxes) {
  const auto& [rows, most, edges] = boxes.edges.shape;
  const bool counted = boxes.counts.data != nullptr;
  if (rows != layout.rows || edges != 4 || (counted && boxes.counts.shape[0] != rows))
    throw setup_error("the boxes of a grid, '" + std::string(boxes.edges.name) + "', have the shape " +
                          to_string(boxes.edges.shape) + ", expected [" + std::to_string(layout.rows) + ", n, 4]",
                      "Pass left, top, right and bottom of each box. Boxes and images must be from the same batch");
  const auto all = boxes.edges.host();
  constexpr std::array<std::uint8_t, 3> color{255, 230, 0};
  const auto height = static_cast<double>(layout.height), width = static_cast<double>(layout.width);
  for (std::size_t i = 0; i < layout.count; ++i) {
    const std::size_t count = counted ? static_cast<std::size_t>(boxes.counts.host()[i]) : most;
    for (std::size_t b = 0; b < std::min(count, most); ++b) {
      const float* edge = &all[(i * most + b) * 4];
      const double left = std::floor(edge[0]), top = std::floor(edge[1]);
      const double right = std::ceil(edge[2]) - 1, bottom = std::ceil(edge[3]) - 1;   // the last pixels inside
      if (!(left <= right && top <= bottom)) continue;                                // also for NaN
      const auto paint = [&](double x, double y) {
        std::uint8_t* to = &grid(layout.top(i) + static_cast<std::size_t>(y),
                                 layout.left(i) + static_cast<std::size_t>(x), std::size_t{0});
        std::copy_n(color.data(), 3, to);
      };
      for (const double y : {top, bottom})
        if (y >= 0 && y < height)
          for (double x = std::max(left, 0.0); x <= std::min(right, width - 1); ++x) paint(x, y);
      for (const double x : {left, right})
        if (x >= 0 && x < width)
          for (double y = std::max(top, 0.0); y <= std::min(bottom, height - 1); ++y) paint(x, y);
    }
  }
}

}}}   // namespace millrace::detail
