// Says where the decoding of a JPEG can begin, other than at its first MCU.
//
//   const mr::detail::jpeg_entry e{.mcu = 4, .offset_bytes = 1'720, .bit = 3, .dc = {112, -4, 9}};
//   stream.enter(e);                             // mcu_stream.hpp: decodes MCU 4 next
//
// A restart marker gives one, whose predictors are zeros. jpeg_entries.hpp makes more of them for a file without
// markers.
// Threads: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct jpeg_entry {
  std::int64_t mcu = 0;                   ///< number in the image, row by row
  std::size_t offset_bytes = 0;           ///< of the file, at the byte that holds the MCU's first bit
  unsigned bit = 0;                       ///< of that byte, from its highest one
  std::array<int, 3> dc{};                ///< predictors: the sums of each component's DC differences before the MCU
};

/// Where a decoder begins that leaves MCUs out.
enum class entry_origin : std::uint8_t {
  none,              ///< at the image's first MCU, and nothing before the last wanted one is left out
  restart_markers,   ///< behind restart markers of the file
  packed             ///< at entries that came beside the file
};

}}}  // namespace millrace::detail
