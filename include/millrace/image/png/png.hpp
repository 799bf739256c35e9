// Images in PNG files of every color type and depth, decoded by Millrace itself.
//
//   mr::picture p = mr::png(r["png"]).random_resized_crop(224, rng).random_flip(rng);
//   mr::picture q = mr::png(r["png"], {.background = mr::rgb_color{255, 255, 255}});    // transparent pixels are white
//
// As in Pillow, palettes are applied, gray becomes RGB, and of 16 bits the high byte is used. Alpha is dropped and the
// color under it kept, as by Pillow's convert("RGB"). With a background, alpha is composited; mr::rgba_picture
// keeps it.
// Gamma, profiles and other ancillary chunks do not change pixels. To read palette indices, use mr::labels()
// (label_map.hpp). Rows are inflated down to the end of the crop, so damage below it may not be detected. An interlaced
// file is decoded completely.
// Errors: data_error, with shard, key and stage "png", for bytes that are not a PNG, for damage, and for an image that
// exceeds max_pixels or 65,535 pixels per side. Threads: the same rules as for `picture`.
// Format: ISO/IEC 15948 (PNG).
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/image/plan/rgb_color.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of png().
struct png_options {
  std::optional<rgb_color> background{};    ///< composites pixels over this color by their alpha; empty: drops alpha
  bool apply_orientation = false;           ///< rotates and mirrors the image by the orientation in its eXIf chunk
  picture_limits limits{};                  ///< max_pixels: limit of the image's pixels
};

namespace detail {

/// Returns whether the bytes begin with a PNG signature.
bool is_png(std::span<const std::byte> file) noexcept;

}  // namespace detail

/// Returns a plan of the full image in `data`. Reads only the chunks before the pixels.
/// Throws data_error if the bytes are not a PNG, are damaged there, or the image is too large.
picture png(bytes data, const png_options& options = {});

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/png/impl/png.inl>
#endif
