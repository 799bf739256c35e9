// One operation of an image's photometric plan: its kind and its parameters.
//
//   using mr::detail::photometric_op, mr::detail::photometric_kind;
//   const photometric_op brighter{.kind = photometric_kind::brightness, .value = 1.4};
//   const photometric_op turned{.kind = photometric_kind::rotate, .value = 9};
//
// A mix is a weighted sum, as in AugMix: it adds the image and the results of several operation chains. In a list of
// operations, the entry of a mix is followed by the entry of the first chain and that chain's operations. The entries
// of the other chains follow in the same form.
// Errors: none; photometric_plan checks the parameters. Threads: not synchronized.
#pragma once

#include <millrace/image/color/rgb_pixels.hpp>

#include <array>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The interpolation between source pixels.
enum class warp_filter : std::uint8_t { nearest, bilinear, bicubic };

/// The kinds of operations. The comments name the members of photometric_op that each kind uses.
enum class photometric_kind : std::uint8_t {
  brightness,   ///< value: the factor, |factor| <= 2^20
  contrast,     ///< value: the factor, |factor| <= 2^20
  saturation,   ///< value: the factor, |factor| <= 2^20
  sharpness,    ///< value: the factor, |factor| <= 2^20
  hue,          ///< value: a fraction of the color circle, -1 to 1
  grayscale,
  invert,
  posterize,      ///< numbers[0]: bits retained, 0 to 8
  solarize,       ///< value: the threshold
  solarize_add,   ///< numbers[0]: the amount to add, 0 to 255
  autocontrast,
  equalize,
  pillow_blur,        ///< value: the radius, 0 to 1000
  torchvision_blur,   ///< value: sigma, above 0; numbers[0]: the kernel's size, odd
  rotate,             ///< value: degrees, counter-clockwise; also filter and fill
  shear_x,            ///< value: columns of shear per row; also filter and fill
  shear_y,            ///< value: rows of shear per column; also filter and fill
  translate,          ///< value, second: pixels to the right and down; also filter and fill
  erase,              ///< numbers: left, top, width and height of a box; also fill
  mix,                ///< numbers: count of chains, count of the mix's entries after this one, weight of the image
  chain               ///< numbers: count of the chain's operations, weight of the chain's result
};

struct photometric_op {
  static constexpr std::int32_t total_weight = 16'384;   ///< the sum of a mix's weights

  photometric_kind kind{};
  warp_filter filter = warp_filter::nearest;
  rgb_color fill{};
  double value = 0, second = 0;
  std::array<std::int32_t, 4> numbers{};

  friend bool operator==(const photometric_op&, const photometric_op&) = default;
};

}}}   // namespace millrace::detail
