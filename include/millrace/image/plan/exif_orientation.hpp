// Finds the orientation in an image's EXIF data: how viewers show the stored rows and columns.
//
//   int seen = mr::detail::exif_orientation(segment);           // a JPEG's APP1 segment
//   int same = mr::detail::tiff_orientation(segment.subspan(6));   // PNG and WebP store it without the "Exif" prefix
//
// Errors: none. Threads: pure functions; any thread. Format: CIPA DC-008, 4.6.4.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Reads 16- and 32-bit numbers in either byte order. The caller checks the bounds.
struct byte_reader {
  const std::byte* data;
  bool little_endian;

  std::uint32_t u8(std::size_t at) const noexcept { return std::to_integer<std::uint32_t>(data[at]); }
  std::uint32_t u16(std::size_t at) const noexcept;
  std::uint32_t u32(std::size_t at) const noexcept;
};

/// Returns the orientation in the payload of an APP1 segment; 0 if the orientation is missing or the segment is
/// malformed.
int exif_orientation(std::span<const std::byte> segment) noexcept;
/// Returns the orientation in EXIF data, which begins with a TIFF header; 0 if the orientation is missing or the data
/// is malformed.
int tiff_orientation(std::span<const std::byte> tiff) noexcept;

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/plan/impl/exif_orientation.inl>
#endif
