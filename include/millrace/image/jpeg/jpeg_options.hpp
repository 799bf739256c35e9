// Options for decoding a JPEG: quality, decoder, orientation and limits.
//
//   auto p = mr::jpeg(r["jpg"], {.quality = mr::picture_quality::fast, .apply_orientation = true});
//   auto q = mr::jpeg(r["jpg"], {.decoder = mr::picture_decoder::libjpeg});      // for comparisons
//
// All decoders produce the same bits for an `exact` image, and for a `fast` image that is decoded at a reduced size.
// Errors: none. Threads: not synchronized.
#pragma once

#include <millrace/base/limits.hpp>

#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// How closely an image matches the result of decoding all pixels, then cropping and resizing.
enum class picture_quality : std::uint8_t {
  exact,   ///< values differ by at most 1 from decoding everything, then cropping and resizing
  /// Decodes at 4/8, 2/8 or 1/8 of the size if the crop is at least 2, 4 or 8 times the target on both axes. In
  /// photographs, the values of such images differ from `exact` by less than 1 on average and by at most 42. All other
  /// images are decoded at full size, and their chroma is resized before the conversion to RGB. Their values differ by
  /// 0.2 on average and by at most 21.
  fast
};

/// The decoder for an image.
enum class picture_decoder : std::uint8_t {
  /// Selects the built-in decoder if it supports the file and has fast code for this CPU, otherwise libjpeg. For a
  /// `fast` image at full size, the choice does not depend on the CPU.
  automatic,
  built_in,   ///< the built-in decoder, on any little-endian CPU; throws data_error for unsupported files
  libjpeg     ///< libjpeg for every file
};

/// Options of jpeg().
struct jpeg_options {
  picture_quality quality = picture_quality::exact;       ///< accuracy or speed
  picture_decoder decoder = picture_decoder::automatic;   ///< the decoder to use
  bool apply_orientation = false;                         ///< rotates and mirrors the image as its EXIF tag requires
  bool accept_damaged = false;   ///< uses the decodable part of a damaged file, and counts the file
  picture_limits limits{};       ///< limits of the image
};

}}   // namespace millrace
