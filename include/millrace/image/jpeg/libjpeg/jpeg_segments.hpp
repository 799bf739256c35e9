// Calls a function for each segment of a JPEG file. A segment is a marker with its payload; coded data is not a
// segment.
//
//   mr::detail::for_each_jpeg_segment(file, [&](unsigned marker, std::span<const std::byte> segment) {
//     if (mr::detail::describes_image(marker)) metadata.insert(metadata.end(), segment.begin(), segment.end());
//   });
//
// The function receives complete segments: two bytes for the marker, two bytes for the length, and the payload. Fill
// bytes, restart markers and other bytes that libjpeg skips do not belong to a segment. The iteration stops at the end
// of the image or at a truncated segment.
// Errors: none. Threads: any; pure functions. Format: ITU-T T.81, B.1.1.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstring>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Calls use(marker, segment) for each segment, in file order.
template <class Use>
void for_each_jpeg_segment(std::span<const std::byte> file, const Use& use) {
  const auto byte = [&](std::size_t at) { return std::to_integer<unsigned>(file[at]); };
  for (std::size_t at = 2; at + 4 <= file.size();) {
    const auto* next = std::memchr(file.data() + at, 0xff, file.size() - at);
    if (!next) return;
    at = static_cast<std::size_t>(static_cast<const std::byte*>(next) - file.data());
    if (at + 4 > file.size()) return;
    const unsigned marker = byte(at + 1);
    const bool alone = marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd8) || marker == 0xff;
    if (alone) {
      ++at;
      continue;
    }
    const std::size_t size = 2 + (byte(at + 2) << 8) + byte(at + 3);
    if (marker == 0xd9 || size < 4 || size > file.size() - at) return;
    use(marker, file.subspan(at, size));
    at += size;
  }
}

/// Returns true for the markers of application segments and comments.
constexpr bool describes_image(unsigned marker) noexcept {
  return (marker >= 0xe0 && marker <= 0xef) || marker == 0xfe;
}

}}}   // namespace millrace::detail
