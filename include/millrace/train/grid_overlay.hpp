// Draws label maps (as colors) and boxes (as outlines) over the images of a grid.
//
//   mr::save_grid(b, "batch.png", {.masks = b.get<&example::mask>()});              // [B, H, W] u8
//   mr::save_grid(b, "batch.png", {.boxes = b.get<&example::boxes>()});             // ragged [n, 4] f32
//
// Each class is drawn in its Pascal VOC color, blended with the image at 50 percent. Pixels of class 0, the background,
// are unchanged. A box consists of its left, top, right and bottom edge, in pixels of the image. The outline is one
// pixel wide and inside the edges. Parts outside the image are not shown. A box with a NaN edge is not shown.
// Threads: no shared state. Lifetime: masks and boxes are views, which are valid until their batch is released.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/tensor/tensor.hpp>
#include <millrace/item/tensor/tensor_view.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// The boxes of a batch's images: a ragged column, or a column with one box per image.
struct grid_boxes {
  grid_boxes() = default;
  /// Uses a ragged column [B, n, 4], where n is the maximum number of boxes in an image.
  grid_boxes(const padded_view<float, 3>& column) : edges(column.values), counts(column.lengths) {}
  grid_boxes(const padded_view<const float, 3>& column) : edges(column.values), counts(column.lengths) {}
  /// Uses a column [B, 4].
  grid_boxes(const tensor_view<const float, 2>& column)
      : edges{.data = column.data,
              .shape = {column.shape[0], 1, column.shape[1]},
              .memory = column.memory,
              .name = column.name} {}
  grid_boxes(const tensor_view<float, 2>& column) : grid_boxes(tensor_view<const float, 2>(column)) {}

  tensor_view<const float, 3> edges{};
  tensor_view<const std::int32_t, 1> counts{};   ///< number of boxes per image; null data: all boxes are drawn
};

namespace detail {

/// The layout of the images in the grid.
struct grid_layout {
  std::size_t rows = 0;                 ///< number of images in the batch
  std::size_t count = 0, columns = 0;   ///< number of shown images; number of columns
  std::size_t height = 0, width = 0, gap = 0;

  std::size_t top(std::size_t i) const noexcept { return i / columns * (height + gap); }
  std::size_t left(std::size_t i) const noexcept { return i % columns * (width + gap); }
};

/// Returns the color of a class. The colors are those of the development kit of Pascal VOC.
std::array<std::uint8_t, 3> class_color(std::uint8_t label) noexcept;

/// Converts a gray grid to RGB; an RGB grid is unchanged.
void convert_grid_to_rgb(image& grid);

/// Blends label maps into an RGB grid. Throws setup_error if the masks do not have the size and the number of the
/// images.
void blend_masks(image& grid, const grid_layout& layout, const tensor_view<const std::uint8_t, 3>& masks);

/// Draws outlines into an RGB grid. Throws setup_error if the shape of the boxes is not [B, n, 4] with B images.
void outline_boxes(image& grid, const grid_layout& layout, const grid_boxes& boxes);

}   // namespace detail

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/train/impl/grid_overlay.inl>
#endif
