// The rules for pixels of resized and padded images: the filter, and the padding mode.
//
//   p.resize(224, 224).filter(mr::resize_filter::bicubic);      // `p` is a mr::picture; default: bilinear
//   p.pad(4, {.mode = mr::padding_mode::reflect});              // default: constant
//
// Errors: none. Threads: any.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// The filter of a resize: the rule that weights the source pixels of each output pixel. The weights of bilinear and
/// bicubic equal the antialiased weights of Pillow and torchvision. The list below states how far each filter reaches.
/// For bilinear and bicubic, the unit is a pixel of the result if the image is reduced, and a pixel of the source if it
/// is enlarged. opencv_linear is for models that were trained with images of cv::resize(): the pixels differ by at most
/// 1 from INTER_LINEAR of OpenCV 5. Use opencv_linear only for such models, because reduced images show aliasing.
enum class resize_filter : std::uint8_t {
  bilinear,       ///< a triangle; reaches one pixel to each side
  bicubic,        ///< Keys' cubic with a = -0.5; reaches two pixels to each side, and overshoots at edges
  opencv_linear   ///< cv::INTER_LINEAR: a triangle; reaches one source pixel to each side, without antialiasing
};

/// The source of the pixels around an image. The names and pixels equal those of torchvision's pad().
enum class padding_mode : std::uint8_t {
  constant,   ///< one color
  edge,       ///< the nearest pixel of the image
  reflect,    ///< the image mirrored at the centers of its outermost pixels, without repeating these pixels
  symmetric   ///< the image mirrored at its edges, so that the outermost pixels are repeated
};

namespace detail {

/// Returns the index of the pixel that is shown at `position`. The line of the image has `count` pixels. Returns -1 if
/// `position` is outside the line and `mode` is constant.
constexpr std::int64_t padded_pixel(padding_mode mode, std::int64_t position, std::int64_t count) noexcept {
  if (position >= 0 && position < count) return position;
  if (mode == padding_mode::constant) return -1;
  if (mode == padding_mode::edge || count == 1) return std::clamp<std::int64_t>(position, 0, count - 1);
  const std::int64_t repeated = mode == padding_mode::symmetric ? 1 : 0, period = 2 * (count - 1 + repeated);
  const std::int64_t in_period = (position % period + period) % period;
  return in_period < count ? in_period : period - repeated - in_period;
}

}   // namespace detail

}}   // namespace millrace
