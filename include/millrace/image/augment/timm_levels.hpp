// The operations of timm's automatic augmentations, and what their levels mean.
//
//   const mr::detail::timm_levels space{.width = 224, .height = 224, .increasing = true};
//   mr::detail::timm_op(space, mr::detail::augment_op::solarize, 9.2, random);   // draws a sign where there is one
//
// A level is a number of 0 to 10. Products are rounded before they are added to, with every compiler.
// Errors: none. Threads: pure; one rng is used by one at a time.
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

/// Which bits a level keeps when it posterizes.
enum class timm_bits : std::uint8_t { from_none, from_four, to_four };   ///< 0 to 4, 4 to 8, 4 down to 0

struct timm_levels {
  double width = 0, height = 0;   ///< of the image
  bool increasing = false;        ///< solarize and the enhancements change more at a higher level
  timm_bits bits = timm_bits::from_none;
  std::optional<interpolation> filter{};
  rgb_color fill = mean_color;
};

/// Draws a level around `level`, clamped to 0 to 10.
inline double timm_level(rng& random, double level, double deviation) noexcept {
  if (deviation > 100) return random.uniform(0, level);
  if (deviation > 0) level += unfused(deviation * (static_cast<double>(fixed_normal(random)) * 0x1p-32));
  return std::clamp(level, 0.0, 10.0);
}

/// Returns the operation at a level. Draws a sign if it has one, and the interpolation if it moves pixels.
inline photometric_op timm_op(const timm_levels& space, augment_op op, double level, rng& random) noexcept {
  const double share = level / 10;
  const auto with_sign = [&](double value) { return random.chance(0.5) ? -value : value; };
  const auto whole = [&](int highest) { return static_cast<std::int32_t>(share * highest); };
  photometric_op made{.fill = space.fill};
  const auto moved = [&](photometric_kind kind, double value) {
    made.kind = kind;
    made.value = with_sign(value);
    const auto filter = space.filter ? *space.filter
                        : random.chance(0.5) ? interpolation::bilinear : interpolation::bicubic;
    made.filter = static_cast<warp_filter>(filter);
  };
  const auto enhanced = [&](photometric_kind kind) {
    made.kind = kind;
    made.value = space.increasing ? std::max(0.1, 1 + with_sign(unfused(share * 0.9))) : unfused(share * 1.8) + 0.1;
  };
  switch (op) {
    case augment_op::shear_x: moved(photometric_kind::shear_x, share * 0.3); break;
    case augment_op::shear_y: moved(photometric_kind::shear_y, share * 0.3); break;
    case augment_op::translate_x: moved(photometric_kind::translate, share * 0.45 * space.width); break;
    case augment_op::translate_y:
      moved(photometric_kind::translate, share * 0.45 * space.height);
      made.second = made.value;
      made.value = 0;
      break;
    case augment_op::rotate: moved(photometric_kind::rotate, share * 30); break;
    case augment_op::brightness: enhanced(photometric_kind::brightness); break;
    case augment_op::color: enhanced(photometric_kind::saturation); break;
    case augment_op::contrast: enhanced(photometric_kind::contrast); break;
    case augment_op::sharpness: enhanced(photometric_kind::sharpness); break;
    case augment_op::posterize:
      made.kind = photometric_kind::posterize;
      made.numbers[0] = space.bits == timm_bits::from_none ? whole(4)
                        : space.bits == timm_bits::from_four ? 4 + whole(4) : 4 - whole(4);
      break;
    case augment_op::solarize:
      made.kind = photometric_kind::solarize;
      made.value = space.increasing ? 256 - whole(256) : whole(256);
      break;
    case augment_op::solarize_add:
      made.kind = photometric_kind::solarize_add;
      made.numbers[0] = whole(110);
      break;
    case augment_op::autocontrast: made.kind = photometric_kind::autocontrast; break;
    case augment_op::equalize: made.kind = photometric_kind::equalize; break;
    default: made.kind = photometric_kind::invert; break;
  }
  return made;
}

}}}  // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
