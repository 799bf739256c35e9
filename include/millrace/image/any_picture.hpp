// An image in any format, told by its content and not by the name of its field.
//
//   mr::picture p = mr::any_picture(r["jpg;jpeg;png"]).random_resized_crop(224, rng).random_flip(rng);
//   mr::picture q = mr::any_picture(r["jpg;png;webp"], {.also = &webp});      // mr::webp_pictures of adapt/webp.hpp
//
// JPEG, PNG and PNM, and one further format that the caller brings. The alpha of a PNG is dropped.
// Errors: those of the format; data_error for bytes of another format, which it names. Threads: as image.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/jpeg/jpeg_options.hpp>
#include <millrace/image/picture/picture.hpp>

#include <cstddef>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI {

/// A further format of any_picture().
struct picture_reader {
  bool (*takes)(std::span<const std::byte> file) noexcept = nullptr;       ///< whether the bytes begin like that format
  picture (*read)(bytes file, const jpeg_options& options) = nullptr;      ///< plans the whole image
};

/// Options of any_picture().
struct any_picture_options {
  jpeg_options jpeg{};                    ///< other formats use its orientation and its limit of pixels
  const picture_reader* also = nullptr;   ///< a further format; null: none
};

/// Returns a plan of the whole image in `data`. Reads only the header.
/// Throws data_error if the format is not known, and the errors of the format.
picture any_picture(bytes data, const any_picture_options& options = {});

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/impl/any_picture.inl>
#endif
