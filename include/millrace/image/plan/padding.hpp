// The padding around an image: the number of pixels on each side, and their colors.
//
//   p.pad({.left = 2, .right = 2}, {.color = {114, 114, 114}})               // `p` is a mr::picture
//       .crop_beyond({.left = -10, .top = -10, .width = 300, .height = 300}, {.color = {114, 114, 114}})
//       .letterbox({.width = 640, .height = 640});
//
// Units: pixels of the planned image. Errors: none. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/values/pixel_rules.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// A color: red, green and blue, each from 0 to 255.
using rgb_color = std::array<std::uint8_t, 3>;

/// The number of pixels around an image.
struct padding_sides {
  std::size_t left = 0, top = 0, right = 0, bottom = 0;
};

/// The values of the pixels around an image.
struct padding_fill {
  padding_mode mode = padding_mode::constant;
  rgb_color color{};   ///< for padding_mode::constant; default: black
  friend bool operator==(const padding_fill&, const padding_fill&) = default;
};

/// A box that may extend beyond the image.
struct outer_box {
  std::int64_t left = 0, top = 0;   ///< negative: to the left of the image, and above it
  std::size_t width = 0, height = 0;
};

/// Options of letterbox().
struct letterbox_options {
  rgb_color color{114, 114, 114};   ///< color of the padding; default: the gray of YOLO
  bool enlarge = true;              ///< whether images that fit into the target size are enlarged
};

namespace detail {

/// One axis of a padded image. Position 0 is the first pixel of the image; positions of padding are negative, or
/// `count` or more. If the padded image is flipped, position 0 is the first pixel of the flipped image.
struct padded_axis {
  std::int64_t begin = 0, end = 0;                     ///< range of the positions that the padded image covers
  std::int64_t count = 0;                              ///< pixels of the image
  std::int64_t rendered_begin = 0, rendered_end = 0;   ///< range of the image's pixels that the padded image shows

  std::int64_t size() const noexcept { return end - begin; }
  /// Returns whether the padded image shows each pixel from rendered_begin to rendered_end at its original position.
  /// This is false if a crop removes the position of a pixel, and the padding shows a copy of the pixel.
  bool contains_rendered() const noexcept {
    return rendered_begin == (begin > 0 ? begin : 0) && rendered_end == (end < count ? end : count);
  }
};

/// The padding of an image to render.
struct padding_of_plan {
  padded_axis across{}, down{};
  padding_fill fill{};
};

}   // namespace detail

}}   // namespace millrace
