// Describes an entry of a JPEG. An entry is an MCU (coding unit) at which decoding can begin. The first MCU is not an
// entry.
//
//   const mr::detail::jpeg_entry e{.mcu = 4, .offset_bytes = 1'720, .bit = 3, .dc = {112, -4, 9}};
//   stream.enter(e);                             // mcu_stream.hpp: decodes MCU 4 next
//
// The position after a restart marker is an entry whose DC values (`dc`) are zero. For a file without restart markers,
// jpeg_entries.hpp computes entries.
// Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct jpeg_entry {
  std::int64_t mcu = 0;           ///< index in the image, row by row
  std::size_t offset_bytes = 0;   ///< offset in the file of the byte with the MCU's first bit
  unsigned bit = 0;               ///< number of the MCU's first bit in that byte; 0 is the highest bit
  std::array<int, 3> dc{};        ///< each component's DC value before the MCU; 0 after a restart marker
};

/// The kind of positions to which a decoder jumps in order to skip MCUs.
enum class entry_origin : std::uint8_t {
  none,              ///< no jumps; the decoder processes every MCU up to the last requested one
  restart_markers,   ///< positions after restart markers of the file
  packed             ///< entries that were passed with the file
};

}}}   // namespace millrace::detail
