// Definitions for exif_orientation.hpp.
#pragma once

#include <millrace/image/plan/exif_orientation.hpp>

#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::uint32_t byte_reader::u16(std::size_t at) const noexcept {
  return little_endian ? u8(at) | u8(at + 1) << 8 : u8(at) << 8 | u8(at + 1);
}

MILLRACE_INLINE std::uint32_t byte_reader::u32(std::size_t at) const noexcept {
  return little_endian ? u16(at) | u16(at + 2) << 16 : u16(at) << 16 | u16(at + 2);
}

MILLRACE_INLINE int exif_orientation(std::span<const std::byte> segment) noexcept {
  if (segment.size() < 6 || std::memcmp(segment.data(), "Exif\0\0", 6) != 0) return 0;
  return tiff_orientation(segment.subspan(6));
}

MILLRACE_INLINE int tiff_orientation(std::span<const std::byte> tiff) noexcept {
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

}}}  // namespace millrace::detail
