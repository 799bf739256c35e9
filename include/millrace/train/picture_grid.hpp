// Draws the images of a batch as a grid, into a file or into the log.
//
//   mr::save_grid(b, "batch.png");                                  // first column of images; or a .jpg file
//   mr::save_grid(b.get<&example::pixels>(), "batch.jpg", {.most = 16, .columns = 4});
//   mr::save_grid(numbers, "batch.png", {.normalized = options});   // f32, f16 or bf16 from normalize(..., options)
//   mr::save_grid(b, "batch.png", {.masks = b.get<&example::mask>(), .boxes = b.get<&example::boxes>()});
//   out.push({.step = n, .images = {mr::encode_grid(b, "augmented")}});     // shows the grid in TensorBoard
//
// Shape: [B, H, W, C], or [B, C, H, W] if `normalized` has that layout; C is 1 or 3. A floating-point value x becomes
// the level (x * std + mean) * 255, rounded and clamped; NaN becomes black. Masks and boxes are drawn over the images;
// a grid with masks or boxes is RGB. A batch in GPU memory is copied to the host, and the call waits for the stream of
// the batch.
// Errors: setup_error for a shape other than those above, and for a file name that does not end with .png, .jpg or
// .jpeg. io_error if the file cannot be written. The file is written completely or not at all.
// Threads: no shared state.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/version.hpp>
#include <millrace/device/normalize_options.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/png/png_encoder.hpp>
#include <millrace/io/file/atomic_file.hpp>
#include <millrace/item/tensor/tensor.hpp>
#include <millrace/item/tensor/tensor_view.hpp>
#include <millrace/train/log.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

// Draws label maps (as colors) and boxes (as outlines) over the images of a grid.
// Each class is drawn in its Pascal VOC color, blended with the image at 50 percent. Pixels of class 0, the background,
// are unchanged. A box consists of its left, top, right and bottom edge, in pixels of the image. The outline is one
// pixel wide and inside the edges. Parts outside the image are not shown. A box with a NaN edge is not shown.
// Threads: no shared state. Lifetime: masks and boxes are views, which are valid until their batch is released.

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
  tensor_view<const std::int32_t, 1>
      counts{};   ///< number of boxes per image; if its data is null, all boxes are drawn
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

/// Blends label maps into an RGB grid. Throws setup_error if the number or the size of the masks differs from that of
/// the images.
void blend_picture_masks(image& grid, const grid_layout& layout, const tensor_view<const std::uint8_t, 3>& masks);

/// Draws outlines into an RGB grid. Throws setup_error if the shape of the boxes is not [B, n, 4], where B is the
/// number of images in the batch.
void outline_boxes(image& grid, const grid_layout& layout, const grid_boxes& boxes);

}   // namespace detail

/// Selects the images of a batch and their presentation.
struct grid_options {
  std::size_t most = 64;                  ///< maximum number of images; the first rows of the batch are shown
  std::optional<std::size_t> columns{};   ///< columns of the grid; by default, columns and rows are about equal
  std::size_t gap = 2;                    ///< pixels between two images
  normalize_options normalized{};   ///< the options that were passed to normalize(); for u8, only the layout matters
  int quality = 95;                 ///< JPEG quality
  tensor_view<const std::uint8_t, 3> masks{};   ///< [B, H, W]: the class of each pixel; no masks by default
  grid_boxes boxes{};                           ///< in pixels of the images; no boxes by default
};

namespace detail {

template <class T>
concept pixel_element = std::is_same_v<std::remove_const_t<T>, std::uint8_t> ||
                        training_element<std::remove_const_t<T>>;

template <class View>
inline constexpr bool holds_pictures = false;
template <pixel_element T>
inline constexpr bool holds_pictures<tensor_view<T, 4>> = true;

template <class Batch>
concept batch_with_views = requires(const Batch& b) { b.to_host(std::get<0>(b.columns())); };

/// Returns the index of the first column of images, or the number of columns if there is none.
template <class... Views>
constexpr std::size_t first_pictures(std::type_identity<std::tuple<Views...>>) {
  std::size_t index = 0;
  static_cast<void>(((holds_pictures<Views> || (++index, false)) || ...));
  return index;
}

/// A view that the host can read: the original view, or a view of a copy if the original is in GPU memory.
template <class T, std::size_t N>
struct host_copy_of_grid {
  tensor<std::remove_const_t<T>, N> copy{};
  tensor_view<const std::remove_const_t<T>, N> view{};

  template <class Batch>
  host_copy_of_grid(const Batch& batch, const tensor_view<T, N>& from) : view(from) {
    if (from.data == nullptr || from.memory == memory_kind::host) return;
    copy = batch.to_host(from);
    view.data = copy.data();
    view.memory = memory_kind::host;
  }
  host_copy_of_grid(const host_copy_of_grid&) = delete;
  host_copy_of_grid& operator=(const host_copy_of_grid&) = delete;
};

template <class T>
std::uint8_t level_of(T value, double std, double mean) noexcept {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    return value;
  } else {
    const double level = (static_cast<double>(to_float(value)) * std + mean) * 255 + 0.5;
    return level > 0 ? static_cast<std::uint8_t>(std::min(level, 255.0)) : 0;   // NaN is not above 0
  }
}

}   // namespace detail

/// Returns the grid as pixels [height, width, C] u8. Throws setup_error if `pictures` does not have the shape of
/// images.
template <detail::pixel_element T>
image make_grid(const tensor_view<T, 4>& pictures, const grid_options& options = {}) {
  const bool planar = options.normalized.layout == image_layout::nchw;
  const auto& s = pictures.shape;
  const std::size_t count = std::min(s[0], options.most), channels = s[planar ? 1 : 3];
  const std::size_t height = s[planar ? 2 : 1], width = s[planar ? 3 : 2];
  if ((channels != 1 && channels != 3) || count == 0 || height == 0 || width == 0)
    throw setup_error("an image grid cannot show the column '" + std::string(pictures.name) + "' of shape " +
                          to_string(s) + (planar ? ", read as [B, C, H, W]" : ", read as [B, H, W, C]"),
                      "Pass at least one image of 1 or 3 channels; {.normalized = {.layout}} sets the layout");
  std::size_t columns = std::min(options.columns.value_or(0), count);
  if (columns == 0)
    while (columns * columns < count) ++columns;
  const std::size_t lines = (count + columns - 1) / columns;
  constexpr std::uint8_t background = 48;
  image grid({lines * (height + options.gap) - options.gap, columns * (width + options.gap) - options.gap, channels});
  std::fill(grid.span().begin(), grid.span().end(), background);

  const auto from = pictures.host();
  const std::size_t pixel_step = planar ? 1 : channels, channel_step = planar ? height * width : 1;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t y = 0; y < height; ++y) {
      auto* to = &grid(i / columns * (height + options.gap) + y, i % columns * (width + options.gap), std::size_t{0});
      const auto* row = from.data() + i * height * width * channels + y * width * pixel_step;
      for (std::size_t x = 0; x < width; ++x)
        for (std::size_t c = 0; c < channels; ++c)
          *to++ = detail::level_of(row[x * pixel_step + c * channel_step], options.normalized.std[c],
                                   options.normalized.mean[c]);
    }
  const detail::grid_layout layout{
      .rows = s[0], .count = count, .columns = columns, .height = height, .width = width, .gap = options.gap};
  if (options.masks.data || options.boxes.edges.data) detail::convert_grid_to_rgb(grid);
  if (options.masks.data) detail::blend_picture_masks(grid, layout, options.masks);
  if (options.boxes.edges.data) detail::outline_boxes(grid, layout, options.boxes);
  return grid;
}

/// Returns the grid of the batch's first column of images. Waits for the batch's stream if the batch is in GPU memory.
template <detail::batch_with_views Batch>
image make_grid(const Batch& batch, const grid_options& options = {}) {
  using views = decltype(batch.columns());
  constexpr std::size_t pictures = detail::first_pictures(std::type_identity<views>{});
  static_assert(pictures < std::tuple_size_v<views>,
                "this batch has no column of images: [B, H, W, C] or [B, C, H, W] of u8, f32, f16 or bf16");
  grid_options grid = options;
  const detail::host_copy_of_grid pixels(batch, std::get<pictures>(batch.columns()));
  const detail::host_copy_of_grid masks(batch, options.masks);
  const detail::host_copy_of_grid edges(batch, options.boxes.edges);
  const detail::host_copy_of_grid counts(batch, options.boxes.counts);
  grid.masks = masks.view;
  grid.boxes.edges = edges.view;
  grid.boxes.counts = counts.view;
  return make_grid(pixels.view, grid);
}

/// Writes the grid of a batch or a view to `path`, as PNG or JPEG according to its extension.
/// Throws setup_error if the extension is not .png, .jpg or .jpeg. Throws setup_error if `pictures` does not have the
/// shape of images. Throws io_error if the file cannot be written.
template <class Pictures>
void save_grid(const Pictures& pictures, const std::string& path, const grid_options& options = {}) {
  const bool png = path.ends_with(".png");
  if (!png && !path.ends_with(".jpg") && !path.ends_with(".jpeg"))
    throw setup_error("an image grid cannot be written to '" + printable(path) + "'",
                      "Use a name that ends with .png, .jpg or .jpeg");
  const image grid = make_grid(pictures, options);
  detail::atomic_file<> file(path, {}, "save_grid");
  file.append(png ? encode_png(grid)
                  : encode_jpeg(grid, {.quality = options.quality, .sampling = chroma_sampling::yuv444}));
  file.publish();
}

/// Encodes the grid of a batch or a view as a JPEG, for a row of the log. Throws setup_error if `pictures` does not
/// have the shape of images.
template <class Pictures>
encoded_image encode_grid(const Pictures& pictures, std::string name, const grid_options& options = {}) {
  const image grid = make_grid(pictures, options);
  return {.name = std::move(name),
          .file = encode_jpeg(grid, {.quality = options.quality, .sampling = chroma_sampling::yuv444}),
          .width = grid.shape()[1],
          .height = grid.shape()[0]};
}

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/train/impl/picture_grid.inl>
#endif
