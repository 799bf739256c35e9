// The filter of an antialiased resize.
//
//   p.resize(224, 224).filter(mr::resize_filter::bicubic);      // `p` is a mr::picture; default: bilinear
//
// The weights equal those of Pillow and torchvision. Errors: none. Threads: constants.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// The weights of an antialiased resize. A filter's width is in pixels of the source or of the result, whichever are
/// larger.
enum class resize_filter : std::uint8_t {
  bilinear,   ///< a triangle; reaches one pixel to each side
  bicubic     ///< Keys' cubic with a = -0.5; reaches two pixels to each side, and overshoots at edges
};

}}  // namespace millrace
