// Maps magnitudes (strengths) of torchvision's automatic augmentations, such as RandAugment, to operations and their
// parameters.
//
//   const mr::detail::torchvision_magnitudes space{.bins = 31, .across = 150.0 / 331.0 * 224, .down = 101.5};
//   mr::detail::torchvision_op(space, mr::detail::augment_op::rotate, 9, true);   // by -9 degrees
//
// A magnitude is the index of a bin. Bin 0 has the minimum effect, and the last bin has the maximum effect.
// Errors: none. Threads: pure functions; any thread.
#pragma once

#include <millrace/image/augment/augment_tables.hpp>
#include <millrace/image/color/photometric_op.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The maximum magnitudes.
struct torchvision_magnitudes {
  std::size_t bins = 31;
  double shear = 0.3, across = 0, down = 0, degrees = 30, enhancement = 0.9;   ///< across, down: pixels
  int bits = 8, fewer_bits = 4;   ///< posterize: bits at bin 0; decrease at the last bin
  warp_filter filter = warp_filter::nearest;
  rgb_color fill{};
};

/// Returns torch.linspace(first, last, bins)[index].
inline float linspace_at(float first, float last, std::size_t bins, std::size_t index) noexcept {
  const double step = (last - first) / static_cast<float>(bins - 1);
  // Products are exact in double. The conversion to float rounds as torch does.
  if (index < bins / 2) return first + static_cast<float>(step * static_cast<double>(index));
  return last - static_cast<float>(step * static_cast<double>(bins - 1 - index));
}

/// Returns whether torchvision draws a sign for the operation.
constexpr bool has_sign(augment_op op) noexcept { return op >= augment_op::shear_x && op <= augment_op::sharpness; }

/// Returns whether the operation has a magnitude.
constexpr bool has_magnitude(augment_op op) noexcept {
  return has_sign(op) || op == augment_op::posterize || op == augment_op::solarize;
}

/// Returns the operation with the magnitude of a bin. `op` must be one of torchvision's operations, but not identity.
inline photometric_op torchvision_op(const torchvision_magnitudes& space, augment_op op, std::size_t bin,
                                     bool negative) noexcept {
  const auto magnitude = [&](double highest) {
    const double value = linspace_at(0, static_cast<float>(highest), space.bins, bin);
    return negative ? -value : value;
  };
  photometric_op result{.filter = space.filter, .fill = space.fill};
  const auto set_value = [&](photometric_kind kind, double value) {
    result.kind = kind;
    result.value = value;
  };
  switch (op) {
    case augment_op::shear_x: set_value(photometric_kind::shear_x, magnitude(space.shear)); break;
    case augment_op::shear_y: set_value(photometric_kind::shear_y, magnitude(space.shear)); break;
    case augment_op::translate_x: set_value(photometric_kind::translate, std::trunc(magnitude(space.across))); break;
    case augment_op::translate_y:
      result.kind = photometric_kind::translate;
      result.second = std::trunc(magnitude(space.down));
      break;
    case augment_op::rotate: set_value(photometric_kind::rotate, magnitude(space.degrees)); break;
    case augment_op::brightness: set_value(photometric_kind::brightness, 1 + magnitude(space.enhancement)); break;
    case augment_op::color: set_value(photometric_kind::saturation, 1 + magnitude(space.enhancement)); break;
    case augment_op::contrast: set_value(photometric_kind::contrast, 1 + magnitude(space.enhancement)); break;
    case augment_op::sharpness: set_value(photometric_kind::sharpness, 1 + magnitude(space.enhancement)); break;
    case augment_op::posterize: {
      const float per_bit = static_cast<float>(space.bins - 1) / static_cast<float>(space.fewer_bits);
      const float bits = static_cast<float>(space.bits) - static_cast<float>(bin) / per_bit;
      result.kind = photometric_kind::posterize;
      result.numbers[0] = static_cast<std::int32_t>(std::nearbyint(bits));
      break;
    }
    case augment_op::solarize:
      set_value(photometric_kind::solarize, 255.0 * double{linspace_at(1, 0, space.bins, bin)});
      break;
    case augment_op::autocontrast: result.kind = photometric_kind::autocontrast; break;
    case augment_op::equalize: result.kind = photometric_kind::equalize; break;
    default: result.kind = photometric_kind::invert; break;
  }
  return result;
}

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
