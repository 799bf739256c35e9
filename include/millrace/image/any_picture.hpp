// An image of any supported format, detected from its content and not from the name of its field.
//
//   mr::picture p = mr::any_picture(r["jpg;jpeg;png"]).random_resized_crop(224, rng).random_flip(rng);
//   mr::picture q = mr::any_picture(r["jpg;png;webp"], {.also = &webp});      // mr::webp_pictures of adapt/webp.hpp
//
// Formats: JPEG, PNG, PNM, and one more format that the caller supplies. The alpha channel of a PNG is dropped.
// Errors: the errors of the detected format; data_error for an unsupported format. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/image/picture/picture.hpp>

#include <cstddef>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI {

/// Functions that recognize and read one more format in any_picture().
struct picture_reader {
  bool (*takes)(std::span<const std::byte> file) noexcept = nullptr;    ///< returns true if the file has this format
  picture (*read)(bytes file, const jpeg_options& options) = nullptr;   ///< returns a plan of the full image
};

/// Options of any_picture().
struct any_picture_options {
  jpeg_options jpeg{};                    ///< other formats use only apply_orientation and limits
  const picture_reader* also = nullptr;   ///< one more format; null for none
};

/// Returns a plan of the full image in `data`. Reads only the header.
/// Throws data_error if the format is not supported or the file is invalid.
picture any_picture(bytes data, const any_picture_options& options = {});

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/impl/any_picture.inl>
#endif
