// A position at which the decoding of a JPEG can begin, other than its first MCU.
//
//   const mr::detail::jpeg_entry e{.mcu = 4, .offset_bytes = 1'720, .bit = 3, .dc = {112, -4, 9}};
//   stream.enter(e);                             // mcu_stream.hpp: decodes MCU 4 next
//
// A restart marker is such a position, with predictors of zero. jpeg_entries.hpp computes more of them for a file
// without markers.
// Threads: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct jpeg_entry {
  std::int64_t mcu = 0;                   ///< index in the image, row by row
  std::size_t offset_bytes = 0;           ///< offset in the file of the byte with the MCU's first bit
  unsigned bit = 0;                       ///< bit of that byte, counted from the highest one
  std::array<int, 3> dc{};                ///< predictors: the sums of each component's DC differences before the MCU
};

/// Where a decoder that skips MCUs begins.
enum class entry_origin : std::uint8_t {
  none,              ///< at the image's first MCU; no MCU before the last requested one is skipped
  restart_markers,   ///< after restart markers of the file
  packed             ///< at entries that were passed with the file
};

}}}  // namespace millrace::detail
