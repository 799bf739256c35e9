// A color: red, green and blue.
//
//   const mr::rgb_color mean{124, 116, 104};
//
// Errors: none. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// Red, green and blue, each from 0 to 255.
using rgb_color = std::array<std::uint8_t, 3>;

}}   // namespace millrace
