// Finds the orientation in an image's EXIF data. The orientation defines how viewers rotate and mirror the stored
// image.
//
//   int seen = mr::detail::exif_orientation(segment);           // a JPEG's APP1 segment
//   int same = mr::detail::tiff_orientation(segment.subspan(6));   // PNG and WebP omit the "Exif" prefix
//
// Errors: none. Threads: pure functions; any thread. Format: CIPA DC-008, 4.6.4.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Reads 16- and 32-bit numbers in either byte order. The caller checks the bounds.
struct byte_reader {
  const std::byte* data;
  bool little_endian;

  std::uint32_t u8(std::size_t at) const noexcept { return std::to_integer<std::uint32_t>(data[at]); }
  std::uint32_t u16(std::size_t at) const noexcept {
    return little_endian ? u8(at) | u8(at + 1) << 8 : u8(at) << 8 | u8(at + 1);
  }
  std::uint32_t u32(std::size_t at) const noexcept {
    return little_endian ? u16(at) | u16(at + 2) << 16 : u16(at) << 16 | u16(at + 2);
  }
};

/// Returns the orientation, 1 to 8, in EXIF data, which begins with a TIFF header; 0 if the orientation is missing or
/// the data is malformed.
inline int tiff_orientation(std::span<const std::byte> tiff) noexcept {
  if (tiff.size() < 8) return 0;
  const bool little_endian = tiff[0] == std::byte{'I'};
  const byte_reader read{tiff.data(), little_endian};
  if (tiff[0] != tiff[1] || (!little_endian && tiff[0] != std::byte{'M'}) || read.u16(2) != 42) return 0;
  const std::size_t directory = read.u32(4);
  if (directory > tiff.size() || tiff.size() - directory < 2) return 0;
  const std::size_t entries = read.u16(directory);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    if (tiff.size() - directory < 2 + 12 * (i + 1)) return 0;
    constexpr std::uint32_t orientation_tag = 0x0112, type_short = 3;
    if (read.u16(entry) != orientation_tag) continue;
    const std::uint32_t value = read.u16(entry + 8);
    return read.u16(entry + 2) == type_short && value >= 1 && value <= 8 ? static_cast<int>(value) : 0;
  }
  return 0;
}
/// Returns the orientation, 1 to 8, in the payload of an APP1 segment; 0 if the orientation is missing or the segment
/// is malformed.
inline int exif_orientation(std::span<const std::byte> segment) noexcept {
  if (segment.size() < 6 || std::memcmp(segment.data(), "Exif\0\0", 6) != 0) return 0;
  return tiff_orientation(segment.subspan(6));
}

}}}   // namespace millrace::detail
