// Maps levels (strengths) of timm's automatic augmentations, such as RandAugment, to operations and their parameters.
//
//   const mr::detail::timm_levels space{.width = 224, .height = 224, .increasing = true};
//   mr::detail::timm_op(space, mr::detail::augment_op::solarize, 9.2, random);   // some operations draw a sign
//
// A level is a number from 0 to 10. The parameters do not depend on the compiler.
// Errors: none. Threads: any thread; do not share an rng between threads.
#pragma once

#include <millrace/base/fixed_point.hpp>
#include <millrace/base/random.hpp>
#include <millrace/image/augment/augment_tables.hpp>
#include <millrace/image/augment/photometric_options.hpp>
#include <millrace/image/color/photometric_op.hpp>
#include <millrace/image/color/unfused.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The number of bits that posterize retains at level 0 and at level 10.
enum class timm_bits : std::uint8_t { from_none, from_four, to_four };   ///< 0 and 4; 4 and 8; 4 and 0

struct timm_levels {
  double width = 0, height = 0;   ///< size of the image
  /// If true, a higher level increases the effect of solarize, brightness, color, contrast and sharpness.
  bool increasing = false;
  timm_bits bits = timm_bits::from_none;
  std::optional<interpolation> filter{};
  rgb_color fill = mean_color;
};

/// Draws a level from a normal distribution with the mean `level`, and clamps the result to 0 to 10. If `deviation` is
/// above 100, draws uniformly from 0 to `level` instead.
inline double timm_level(rng& random, double level, double deviation) noexcept {
  if (deviation > 100) return random.uniform(0, level);
  if (deviation > 0) level += unfused(deviation * (static_cast<double>(fixed_normal(random)) * 0x1p-32));
  return std::clamp(level, 0.0, 10.0);
}

/// Returns the operation at a level. Draws the sign if the operation has a sign. Draws the interpolation if the
/// operation moves pixels and `filter` is not set.
inline photometric_op timm_op(const timm_levels& space, augment_op op, double level, rng& random) noexcept {
  const double share = level / 10;
  const auto with_sign = [&](double value) { return random.chance(0.5) ? -value : value; };
  const auto scaled = [&](int highest) { return static_cast<std::int32_t>(share * highest); };
  photometric_op result{.fill = space.fill};
  const auto set_warp = [&](photometric_kind kind, double value) {
    result.kind = kind;
    result.value = with_sign(value);
    const auto filter = space.filter         ? *space.filter
                        : random.chance(0.5) ? interpolation::bilinear
                                             : interpolation::bicubic;
    result.filter = static_cast<warp_filter>(filter);
  };
  const auto set_enhancement = [&](photometric_kind kind) {
    result.kind = kind;
    result.value = space.increasing ? std::max(0.1, 1 + with_sign(unfused(share * 0.9))) : unfused(share * 1.8) + 0.1;
  };
  switch (op) {
    case augment_op::shear_x: set_warp(photometric_kind::shear_x, share * 0.3); break;
    case augment_op::shear_y: set_warp(photometric_kind::shear_y, share * 0.3); break;
    case augment_op::translate_x: set_warp(photometric_kind::translate, share * 0.45 * space.width); break;
    case augment_op::translate_y:
      set_warp(photometric_kind::translate, share * 0.45 * space.height);
      result.second = result.value;
      result.value = 0;
      break;
    case augment_op::rotate: set_warp(photometric_kind::rotate, share * 30); break;
    case augment_op::brightness: set_enhancement(photometric_kind::brightness); break;
    case augment_op::color: set_enhancement(photometric_kind::saturation); break;
    case augment_op::contrast: set_enhancement(photometric_kind::contrast); break;
    case augment_op::sharpness: set_enhancement(photometric_kind::sharpness); break;
    case augment_op::posterize:
      result.kind = photometric_kind::posterize;
      result.numbers[0] = space.bits == timm_bits::from_none   ? scaled(4)
                          : space.bits == timm_bits::from_four ? 4 + scaled(4)
                                                               : 4 - scaled(4);
      break;
    case augment_op::solarize:
      result.kind = photometric_kind::solarize;
      result.value = space.increasing ? 256 - scaled(256) : scaled(256);
      break;
    case augment_op::solarize_add:
      result.kind = photometric_kind::solarize_add;
      result.numbers[0] = scaled(110);
      break;
    case augment_op::autocontrast: result.kind = photometric_kind::autocontrast; break;
    case augment_op::equalize: result.kind = photometric_kind::equalize; break;
    default: result.kind = photometric_kind::invert; break;
  }
  return result;
}

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
