// Images in PNG files of every color type and depth. The decoder is part of Millrace.
//
//   mr::picture p = mr::png(r["png"]).random_resized_crop(224, rng).random_flip(rng);
//   mr::picture q = mr::png(r["png"], {.background = mr::rgb_color{255, 255, 255}});    // transparent pixels are white
//
// As in Pillow, palettes are applied, gray becomes RGB, and only the high byte of each 16-bit color value is used.
// Alpha is dropped without changing the colors, as by Pillow's convert("RGB"). With a background, pixels are composited
// by their alpha. mr::rgba_picture keeps alpha. Gamma, profiles and other ancillary chunks do not change pixels. To
// read palette indices, use mr::labels() (label_map.hpp). To read all bits of 16-bit RGB, use u16() (u16_picture.hpp).
// Rows are inflated down to the end of the crop, so damage below the crop can remain undetected. An interlaced file is
// decoded completely.
// Errors: data_error if the bytes are not a PNG, are damaged, or declare an image that is too large. The limits are
// max_pixels, and 65,535 pixels per side. The error has shard, key and stage "png". Threads: not synchronized.
// Format: ISO/IEC 15948 (PNG).
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/image/plan/padding.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of png().
struct png_options {
  std::optional<rgb_color> background{};   ///< the color over which pixels are composited; if empty, alpha is dropped
  bool apply_orientation = false;          ///< rotates and mirrors the image by the orientation in its eXIf chunk
  picture_limits limits{};                 ///< max_pixels: maximum number of pixels
};

namespace detail {

/// Returns whether the bytes begin with a PNG signature.
bool is_png(std::span<const std::byte> file) noexcept;

}   // namespace detail

/// Returns a plan of the full image in `data`. Reads only the chunks before the pixels.
/// Throws data_error if the bytes are not a PNG, if those chunks are damaged, or if the image is too large.
picture png(bytes data, const png_options& options = {});

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/png/impl/png.inl>
#endif
