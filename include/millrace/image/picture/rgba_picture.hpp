// An image with its alpha channel: u8 RGBA, [height, width, 4].
//
//   struct example { mr::rgba_picture pixels; std::int32_t label; };
//   example prepare(const mr::record& r, mr::rng& rng) {
//     mr::picture p = mr::png(r["png"]).random_resized_crop(224, rng).random_flip(rng);
//     return {mr::rgba_picture(std::move(p)), r["cls"].as<std::int32_t>()};
//   }
//
// Colors are resized with alpha as their weight, as in Pillow. Therefore the colors of transparent pixels do not affect
// visible pixels. The result of a resize differs by at most 1 from Pillow's. Without a resize, the stored colors do not
// change. Photometric operations change only colors. Alpha is 255 for an image without alpha, and for an image that is
// composited over a background. Formats with alpha: PNG and WebP.
// Errors: the same errors as `picture`. Threads: not synchronized. Memory of a thread: two RGB images for each image of
// a render_together() call.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/item/scratch.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// The plan of an image; renders [height, width, 4] u8.
class rgba_picture {
 public:
  using element = std::uint8_t;
  static constexpr const char* rendering = picture::rendering;
  static constexpr std::size_t together = picture::together;

  /// Stores a plan.
  explicit rgba_picture(picture plan) noexcept : picture_(std::move(plan)) {}

  /// Returns [height, width, 4].
  std::array<std::size_t, 3> shape() const noexcept { return {picture_.height(), picture_.width(), 4}; }
  /// Returns the plan of the image.
  const picture& plan() const noexcept { return picture_; }

  /// Decodes into `row`, which must have height * width * 4 bytes. Throws setup_error if the row has another size, and
  /// data_error if the file is damaged.
  void render(std::span<std::uint8_t> row, scratch& s) const;
  /// Decodes up to `together` images, each into its row. Faster than separate calls of render(), with the same result.
  static void render_together(std::span<const rgba_picture* const> pictures,
                              std::span<const std::span<std::uint8_t>> rows, scratch& s);

  /// Decodes now and returns the pixels, [height, width, 4] u8. Throws data_error if the file is damaged.
  image pixels(scratch& s) const;
  image pixels() const;

 private:
  bool is_resized() const noexcept;

  picture picture_;
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/picture/impl/rgba_picture.inl>
#endif
