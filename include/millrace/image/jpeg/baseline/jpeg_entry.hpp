// Describes an entry of a JPEG. An entry is an MCU (coding unit) at which decoding can begin. The first MCU is not an
// entry.
//
//   const mr::detail::jpeg_entry e{.mcu = 4, .offset_bytes = 1'720, .bit = 3, .dc = {112, -4, 9}};
//   stream.enter(e);                             // mcu_stream.hpp: decodes MCU 4 next
//
// The position after a restart marker is an entry whose predictors are zero. For a file without restart markers,
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
  unsigned bit = 0;               ///< bit of that byte, counted from the highest one
  std::array<int, 3> dc{};        ///< predictors: each component's sum of DC differences before the MCU
};

/// The kind of position at which a decoder that skips MCUs begins.
enum class entry_origin : std::uint8_t {
  none,              ///< the image's first MCU; no MCU before the last requested one is skipped
  restart_markers,   ///< positions after restart markers of the file
  packed             ///< entries that were passed with the file
};

}}}   // namespace millrace::detail
