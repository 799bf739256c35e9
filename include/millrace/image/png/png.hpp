// Images in PNG files, of every color type and depth, by a decoder of Millrace's own.
//
//   mr::picture p = mr::png(r["png"]).random_resized_crop(224, rng).random_flip(rng);
//   mr::picture q = mr::png(r["png"], {.background = mr::rgb_color{255, 255, 255}});    // transparent pixels are white
//
// Palettes are applied, gray becomes RGB, and of 16 bits the high byte is taken, as Pillow does. Alpha is dropped,
// whatever color lies under it, as by Pillow's convert("RGB"); with a background it is composited, and
// mr::rgba_picture keeps it. Gamma, profiles and other ancillary chunks change no pixel. Indices of a palette are
// mr::labels() (label_map.hpp).
// Rows are inflated down to the end of the crop, so that damage below it may not be seen. An interlaced file is decoded
// whole.
// Errors: data_error, with shard, key and stage "png", for bytes that are not a PNG and for damage. Also for an image
// that exceeds max_pixels, or 65,535 pixels a side. Threads: as `picture`.
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
  bool apply_orientation = false;           ///< turns and mirrors the image as its eXIf chunk says
  picture_limits limits{};                  ///< max_pixels: what the image may need
};

namespace detail {

/// Returns whether the bytes begin like a PNG.
bool is_png(std::span<const std::byte> file) noexcept;

}  // namespace detail

/// Returns a plan of the whole image in `data`. Reads only what stands before its pixels.
/// Throws data_error if the bytes are not a PNG, are damaged there, or the image is too large.
picture png(bytes data, const png_options& options = {});

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/png/impl/png.inl>
#endif
