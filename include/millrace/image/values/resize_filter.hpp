// The filter of a resize, such as bilinear: the rule that weights the source pixels of each output pixel.
//
//   p.resize(224, 224).filter(mr::resize_filter::bicubic);      // `p` is a mr::picture; default: bilinear
//
// The weights of bilinear and bicubic equal the antialiased weights of Pillow and torchvision. opencv_linear is for
// models that were trained with images of cv::resize(): the pixels differ by at most 1 from INTER_LINEAR of OpenCV 5.
// Use opencv_linear only for such models, because reduced images show aliasing. Errors: none. Threads: any.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// The weights of a resize. If the image is reduced, the width of an antialiased filter is in pixels of the result.
/// Otherwise, the width is in pixels of the source.
enum class resize_filter : std::uint8_t {
  bilinear,       ///< a triangle; reaches one pixel to each side
  bicubic,        ///< Keys' cubic with a = -0.5; reaches two pixels to each side, and overshoots at edges
  opencv_linear   ///< cv::INTER_LINEAR: a triangle of two pixels of the source, without antialiasing
};

}}   // namespace millrace
