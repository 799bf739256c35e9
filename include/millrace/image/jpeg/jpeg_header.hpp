// Reads the header of a JPEG: size, components, coding process and EXIF orientation. Defines the options of its
// decoding, jpeg_options.
//
//   mr::jpeg_header h = mr::read_jpeg_header(bytes);      // about 0.1 us; allocates nothing
//   std::size_t pixels = h.width * h.height;              // also h.components, h.progressive, h.orientation
//
// Errors: data_error if the bytes are not a JPEG, are truncated, or use an unsupported coding process. If Millrace
// detects another format, the message names that format. Threads: any; pure functions.
// Format: ITU-T T.81 annex B, and CIPA DC-008, 4.6.4, for the EXIF orientation tag.
#pragma once

#include <millrace/base/limits.hpp>
#include <millrace/image/plan/exif_orientation.hpp>
#include <millrace/image/values/jpeg_refusal.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// Options of jpeg(). All decoders produce the same bits for an `exact` image, and for a `fast` image that is decoded
/// at a reduced size.
struct jpeg_options {
  picture_quality quality = picture_quality::exact;       ///< accuracy or speed
  picture_decoder decoder = picture_decoder::automatic;   ///< the decoder to use
  bool apply_orientation = false;                         ///< rotates and mirrors the image as its EXIF tag requires
  bool accept_damaged = false;   ///< uses the decodable part of a damaged file; the session report counts such files
  picture_limits limits{};       ///< limits of the image
};

/// The properties of an image, as declared in the headers of a JPEG.
struct jpeg_header {
  std::size_t width = 0;    ///< pixels, as stored (before any orientation)
  std::size_t height = 0;   ///< pixels, as stored (before any orientation)
  int components = 0;       ///< 1 (gray), 3 (color) or 4 (CMYK)
  bool progressive = false;
  bool arithmetic = false;   ///< true for arithmetic coding, false for Huffman coding
  int orientation = 1;       ///< value of the EXIF tag, 1..8; 1 without a tag
};

namespace detail {

/// Detects the format of a file from its first bytes. Returns the name of the format; empty if unknown.
std::string_view sniff_format(std::span<const std::byte> data) noexcept;

/// The detected format of a file, and advice. `name` begins with an article, such as "a PNG". It is empty if the format
/// is unknown.
struct picture_format_hint {
  std::string_view name{};
  std::string advice{};
};

/// Returns the detected format of a file that the caller cannot read, and advice on how to read the file.
picture_format_hint hint_on_format(std::span<const std::byte> data);

/// Returns the error message for bytes whose format is not `expected`, such as "a JPEG".
std::string other_format_message(std::span<const std::byte> data, const std::string& expected);

[[noreturn]] void throw_bad_jpeg(std::string message, std::string hint);

std::string first_bytes(std::span<const std::byte> data);

[[noreturn]] void throw_not_a_jpeg(std::span<const std::byte> data);

void read_frame_header(const byte_reader& read, std::size_t at, std::size_t size, std::uint32_t marker,
                       jpeg_header& header);

}   // namespace detail

/// Returns the properties that the JPEG's headers declare. With `accept_damaged`, the first marker may be damaged.
/// Throws data_error if the bytes are not a JPEG, are truncated, or use an unsupported coding process.
jpeg_header read_jpeg_header(std::span<const std::byte> data, bool accept_damaged = false);

/// Returns the reason why libjpeg must decode a file, or `none` if the built-in decoder supports the file. Reads only
/// headers. Does not detect damage in the coded data. A file with such damage needs libjpeg although the result is
/// `none`.
jpeg_refusal refusal_of_header(std::span<const std::byte> file);

/// Options of jpeg_metadata().
struct jpeg_metadata_options {
  bool color_profile = true;   ///< whether the result includes the ICC profile
};

/// Returns the segments that describe the image (EXIF, comments, ICC profile), complete and in file order. Omits the
/// segments that describe the coding (JFIF, Adobe), because each encoder writes its own.
std::vector<std::byte> jpeg_metadata(std::span<const std::byte> file, jpeg_metadata_options options = {});

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/jpeg/impl/jpeg_header.inl>
#endif
