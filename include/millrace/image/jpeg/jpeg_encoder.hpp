// Encodes pixels as a JPEG file in memory, for examples, tests and tools.
//
//   std::vector<std::byte> file = mr::encode_jpeg(pixels, {.quality = 90});
//   auto gray = mr::encode_jpeg(gray_pixels, {.progressive = true});       // gray_pixels: [height, width, 1]
//
// Shape: [height, width, 3] RGB or [height, width, 1] gray, u8; each side has 1 to 65500 pixels.
// The same pixels, options and libjpeg version produce the same bytes.
// Errors: setup_error if JPEG does not support the shape or an option; io_error if libjpeg cannot be initialized.
// Threads: any; calls share no state.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The number of pixels that share one chroma value, as width x height.
/// yuv444: 1 x 1, yuv422: 2 x 1, yuv440: 1 x 2, yuv420: 2 x 2, yuv411: 4 x 1.
enum class chroma_sampling : std::uint8_t { yuv444, yuv422, yuv440, yuv420, yuv411 };

/// Options of encode_jpeg().
struct jpeg_encode_options {
  int quality = 90;                                     ///< 1..100
  chroma_sampling sampling = chroma_sampling::yuv420;   ///< ignored for gray and keep_rgb
  bool progressive = false;                             ///< several scans instead of one
  bool arithmetic = false;                              ///< arithmetic instead of Huffman coding
  bool optimize_tables = true;                          ///< optimal Huffman tables: slower, but smaller files
  unsigned restart_rows = 0;                            ///< MCU (coding unit) rows between restart markers; 0 for none
  bool keep_rgb = false;                                ///< stores RGB, not YCbCr: larger file, more exact colors
};

/// Encodes `pixels`, [height, width, 1 or 3] u8, and returns the JPEG file. Throws setup_error if the shape or an
/// option is not supported, and io_error if libjpeg cannot be initialized.
std::vector<std::byte> encode_jpeg(const image& pixels, const jpeg_encode_options& options = {});

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/jpeg/impl/jpeg_encoder.inl>
#endif
