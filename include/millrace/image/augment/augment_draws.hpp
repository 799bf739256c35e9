// Draws the operations of automatic augmentations: RandAugment, TrivialAugmentWide, AutoAugment and AugMix.
//
//   std::vector<mr::detail::photometric_op> ops;
//   mr::detail::draw_rand_augment({.width = 224, .height = 224}, random, {}, ops);   // appends up to 2 operations
//
// If the random draws are equal, the parameters of the operations are bit-identical to those of torchvision and timm.
// Errors: setup_error if an option is outside its range. Threads: any thread; do not share an rng between threads.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/fixed_point.hpp>
#include <millrace/base/random.hpp>
#include <millrace/base/version.hpp>
#include <millrace/image/augment/photometric_plan.hpp>
#include <millrace/image/color/photometric_op.hpp>
#include <millrace/image/color/unfused.hpp>
#include <millrace/image/plan/random_crop.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns true with this probability. Draws no random number if the probability is at least 1.
inline bool happens(rng& random, double probability) noexcept { return probability >= 1 || random.chance(probability); }

/// Throws setup_error unless the number is in the range. `subject` is, for example, "the factor of brightness()".
inline void check_range(const char* subject, double got, double least, double highest) {
  if (!(got >= least && got <= highest))
    throw setup_error(std::string(subject) + " is out of range: got " + std::to_string(got) + ", expected " +
                          std::to_string(least) + " to " + std::to_string(highest),
                      "Pass a number in that range");
}

using photometric_ops = std::vector<photometric_op>;

void draw_rand_augment(picture_size size, rng& random, const rand_augment_options& options, photometric_ops& ops);
void draw_trivial_augment(picture_size size, rng& random, const trivial_augment_options& options, photometric_ops& ops);
void draw_auto_augment(picture_size size, rng& random, const auto_augment_options& options, photometric_ops& ops);
void draw_aug_mix(picture_size size, rng& random, const aug_mix_options& options, photometric_ops& ops);

// The published policies of AutoAugment, as tables; and the parameters of the operations of automatic augmentations.
//
//   const mr::detail::augment_pair& pair = mr::detail::imagenet_pairs[0];
//   pair[0].op;                                    // posterize; its probability is pair[0].tenths / 10
//
// Threads: any.
// Sources: Cubuk, Zoph, Mane, Vasudevan, Le: AutoAugment, CVPR 2019; the policy of TensorFlow's EfficientNet. The
// tables equal those of torchvision and timm.

// clang-format off
/// The operations that automatic augmentations choose from.
enum class augment_op : std::uint8_t {
  identity, shear_x, shear_y, translate_x, translate_y, rotate, brightness, color, contrast, sharpness, posterize,
  solarize, autocontrast, equalize, invert, solarize_add
};

/// An operation of a policy. Operations without a magnitude have level 0.
struct augment_step {
  augment_op op;
  std::uint8_t tenths;   ///< probability in tenths
  std::uint8_t level;    ///< torchvision: index of a bin, 0 to 9; timm: strength, 0 to 10
};

using augment_pair = std::array<augment_step, 2>;

/// The policy for ImageNet.
inline constexpr augment_pair imagenet_pairs[25] = {
    {{{augment_op::posterize, 4, 8}, {augment_op::rotate, 6, 9}}},
    {{{augment_op::solarize, 6, 5}, {augment_op::autocontrast, 6, 0}}},
    {{{augment_op::equalize, 8, 0}, {augment_op::equalize, 6, 0}}},
    {{{augment_op::posterize, 6, 7}, {augment_op::posterize, 6, 6}}},
    {{{augment_op::equalize, 4, 0}, {augment_op::solarize, 2, 4}}},
    {{{augment_op::equalize, 4, 0}, {augment_op::rotate, 8, 8}}},
    {{{augment_op::solarize, 6, 3}, {augment_op::equalize, 6, 0}}},
    {{{augment_op::posterize, 8, 5}, {augment_op::equalize, 10, 0}}},
    {{{augment_op::rotate, 2, 3}, {augment_op::solarize, 6, 8}}},
    {{{augment_op::equalize, 6, 0}, {augment_op::posterize, 4, 6}}},
    {{{augment_op::rotate, 8, 8}, {augment_op::color, 4, 0}}},
    {{{augment_op::rotate, 4, 9}, {augment_op::equalize, 6, 0}}},
    {{{augment_op::equalize, 0, 0}, {augment_op::equalize, 8, 0}}},
    {{{augment_op::invert, 6, 0}, {augment_op::equalize, 10, 0}}},
    {{{augment_op::color, 6, 4}, {augment_op::contrast, 10, 8}}},
    {{{augment_op::rotate, 8, 8}, {augment_op::color, 10, 2}}},
    {{{augment_op::color, 8, 8}, {augment_op::solarize, 8, 7}}},
    {{{augment_op::sharpness, 4, 7}, {augment_op::invert, 6, 0}}},
    {{{augment_op::shear_x, 6, 5}, {augment_op::equalize, 10, 0}}},
    {{{augment_op::color, 4, 0}, {augment_op::equalize, 6, 0}}},
    {{{augment_op::equalize, 4, 0}, {augment_op::solarize, 2, 4}}},
    {{{augment_op::solarize, 6, 5}, {augment_op::autocontrast, 6, 0}}},
    {{{augment_op::invert, 6, 0}, {augment_op::equalize, 10, 0}}},
    {{{augment_op::color, 6, 4}, {augment_op::contrast, 10, 8}}},
    {{{augment_op::equalize, 8, 0}, {augment_op::equalize, 6, 0}}}};

/// The policy for CIFAR-10.
inline constexpr augment_pair cifar10_pairs[25] = {
    {{{augment_op::invert, 1, 0}, {augment_op::contrast, 2, 6}}},
    {{{augment_op::rotate, 7, 2}, {augment_op::translate_x, 3, 9}}},
    {{{augment_op::sharpness, 8, 1}, {augment_op::sharpness, 9, 3}}},
    {{{augment_op::shear_y, 5, 8}, {augment_op::translate_y, 7, 9}}},
    {{{augment_op::autocontrast, 5, 0}, {augment_op::equalize, 9, 0}}},
    {{{augment_op::shear_y, 2, 7}, {augment_op::posterize, 3, 7}}},
    {{{augment_op::color, 4, 3}, {augment_op::brightness, 6, 7}}},
    {{{augment_op::sharpness, 3, 9}, {augment_op::brightness, 7, 9}}},
    {{{augment_op::equalize, 6, 0}, {augment_op::equalize, 5, 0}}},
    {{{augment_op::contrast, 6, 7}, {augment_op::sharpness, 6, 5}}},
    {{{augment_op::color, 7, 7}, {augment_op::translate_x, 5, 8}}},
    {{{augment_op::equalize, 3, 0}, {augment_op::autocontrast, 4, 0}}},
    {{{augment_op::translate_y, 4, 3}, {augment_op::sharpness, 2, 6}}},
    {{{augment_op::brightness, 9, 6}, {augment_op::color, 2, 8}}},
    {{{augment_op::solarize, 5, 2}, {augment_op::invert, 0, 0}}},
    {{{augment_op::equalize, 2, 0}, {augment_op::autocontrast, 6, 0}}},
    {{{augment_op::equalize, 2, 0}, {augment_op::equalize, 6, 0}}},
    {{{augment_op::color, 9, 9}, {augment_op::equalize, 6, 0}}},
    {{{augment_op::autocontrast, 8, 0}, {augment_op::solarize, 2, 8}}},
    {{{augment_op::brightness, 1, 3}, {augment_op::color, 7, 0}}},
    {{{augment_op::solarize, 4, 5}, {augment_op::autocontrast, 9, 0}}},
    {{{augment_op::translate_y, 9, 9}, {augment_op::translate_y, 7, 9}}},
    {{{augment_op::autocontrast, 9, 0}, {augment_op::solarize, 8, 3}}},
    {{{augment_op::equalize, 8, 0}, {augment_op::invert, 1, 0}}},
    {{{augment_op::translate_y, 7, 9}, {augment_op::autocontrast, 9, 0}}}};

/// The policy for SVHN.
inline constexpr augment_pair svhn_pairs[25] = {
    {{{augment_op::shear_x, 9, 4}, {augment_op::invert, 2, 0}}},
    {{{augment_op::shear_y, 9, 8}, {augment_op::invert, 7, 0}}},
    {{{augment_op::equalize, 6, 0}, {augment_op::solarize, 6, 6}}},
    {{{augment_op::invert, 9, 0}, {augment_op::equalize, 6, 0}}},
    {{{augment_op::equalize, 6, 0}, {augment_op::rotate, 9, 3}}},
    {{{augment_op::shear_x, 9, 4}, {augment_op::autocontrast, 8, 0}}},
    {{{augment_op::shear_y, 9, 8}, {augment_op::invert, 4, 0}}},
    {{{augment_op::shear_y, 9, 5}, {augment_op::solarize, 2, 6}}},
    {{{augment_op::invert, 9, 0}, {augment_op::autocontrast, 8, 0}}},
    {{{augment_op::equalize, 6, 0}, {augment_op::rotate, 9, 3}}},
    {{{augment_op::shear_x, 9, 4}, {augment_op::solarize, 3, 3}}},
    {{{augment_op::shear_y, 8, 8}, {augment_op::invert, 7, 0}}},
    {{{augment_op::equalize, 9, 0}, {augment_op::translate_y, 6, 6}}},
    {{{augment_op::invert, 9, 0}, {augment_op::equalize, 6, 0}}},
    {{{augment_op::contrast, 3, 3}, {augment_op::rotate, 8, 4}}},
    {{{augment_op::invert, 8, 0}, {augment_op::translate_y, 0, 2}}},
    {{{augment_op::shear_y, 7, 6}, {augment_op::solarize, 4, 8}}},
    {{{augment_op::invert, 6, 0}, {augment_op::rotate, 8, 4}}},
    {{{augment_op::shear_y, 3, 7}, {augment_op::translate_x, 9, 3}}},
    {{{augment_op::shear_x, 1, 6}, {augment_op::invert, 6, 0}}},
    {{{augment_op::solarize, 7, 2}, {augment_op::translate_y, 6, 7}}},
    {{{augment_op::shear_y, 8, 4}, {augment_op::invert, 8, 0}}},
    {{{augment_op::shear_x, 7, 9}, {augment_op::translate_y, 8, 3}}},
    {{{augment_op::shear_y, 8, 5}, {augment_op::autocontrast, 7, 0}}},
    {{{augment_op::shear_x, 7, 2}, {augment_op::invert, 1, 0}}}};

/// TensorFlow's policy for EfficientNet.
inline constexpr augment_pair efficientnet_pairs[25] = {
    {{{augment_op::equalize, 8, 0}, {augment_op::shear_y, 8, 4}}},
    {{{augment_op::color, 4, 9}, {augment_op::equalize, 6, 0}}},
    {{{augment_op::color, 4, 1}, {augment_op::rotate, 6, 8}}},
    {{{augment_op::solarize, 8, 3}, {augment_op::equalize, 4, 0}}},
    {{{augment_op::solarize, 4, 2}, {augment_op::solarize, 6, 2}}},
    {{{augment_op::color, 2, 0}, {augment_op::equalize, 8, 0}}},
    {{{augment_op::equalize, 4, 0}, {augment_op::solarize_add, 8, 3}}},
    {{{augment_op::shear_x, 2, 9}, {augment_op::rotate, 6, 8}}},
    {{{augment_op::color, 6, 1}, {augment_op::equalize, 10, 0}}},
    {{{augment_op::invert, 4, 0}, {augment_op::rotate, 6, 0}}},
    {{{augment_op::equalize, 10, 0}, {augment_op::shear_y, 6, 3}}},
    {{{augment_op::color, 4, 7}, {augment_op::equalize, 6, 0}}},
    {{{augment_op::posterize, 4, 6}, {augment_op::autocontrast, 4, 0}}},
    {{{augment_op::solarize, 6, 8}, {augment_op::color, 6, 9}}},
    {{{augment_op::solarize, 2, 4}, {augment_op::rotate, 8, 9}}},
    {{{augment_op::rotate, 10, 7}, {augment_op::translate_y, 8, 9}}},
    {{{augment_op::shear_x, 0, 0}, {augment_op::solarize, 8, 4}}},
    {{{augment_op::shear_y, 8, 0}, {augment_op::color, 6, 4}}},
    {{{augment_op::color, 10, 0}, {augment_op::rotate, 6, 2}}},
    {{{augment_op::equalize, 8, 0}, {augment_op::equalize, 0, 0}}},
    {{{augment_op::equalize, 10, 0}, {augment_op::autocontrast, 6, 0}}},
    {{{augment_op::shear_y, 4, 7}, {augment_op::solarize_add, 6, 7}}},
    {{{augment_op::posterize, 8, 2}, {augment_op::solarize, 6, 10}}},
    {{{augment_op::solarize, 6, 8}, {augment_op::equalize, 6, 0}}},
    {{{augment_op::color, 8, 6}, {augment_op::rotate, 4, 5}}}};

// clang-format on

}}}   // namespace millrace::detail

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Maps magnitudes (strengths) of torchvision's automatic augmentations, such as RandAugment, to operations and their
// parameters.
//
//   const mr::detail::torchvision_magnitudes space{.bins = 31, .across = 150.0 / 331.0 * 224, .down = 101.5};
//   mr::detail::torchvision_op(space, mr::detail::augment_op::rotate, 9, true);   // by -9 degrees
//
// A magnitude is the index of a bin. Bin 0 has the minimum effect, and the last bin has the maximum effect.
// Errors: none. Threads: pure functions; any thread.

/// The number of bins, the maximum magnitudes, and the options of geometric operations.
struct torchvision_magnitudes {
  std::size_t bins = 31;
  double shear = 0.3, across = 0, down = 0, degrees = 30, enhancement = 0.9;   ///< across, down: pixels
  int bits = 8, fewer_bits = 4;   ///< posterize retains `bits` bits at bin 0, `bits` - `fewer_bits` at the last bin
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

// Maps levels (strengths) of timm's automatic augmentations, such as RandAugment, to operations and their parameters.
//
//   const mr::detail::timm_levels space{.width = 224, .height = 224, .increasing = true};
//   mr::detail::timm_op(space, mr::detail::augment_op::solarize, 9.2, random);   // some operations draw a sign
//
// A level is a number from 0 to 10. The parameters do not depend on the compiler.
// Errors: none. Threads: any thread; do not share an rng between threads.

/// The number of bits that posterize retains: at level 0, and at level 10. from_none: 0, and 4. from_four: 4, and 8.
/// to_four: 4, and 0.
enum class timm_bits : std::uint8_t { from_none, from_four, to_four };

struct timm_levels {
  double width = 0, height = 0;   ///< size of the image
  /// If true, a higher level increases the effect of solarize, brightness, color, contrast and sharpness. If false, a
  /// higher level increases the threshold of solarize, and the factor of the others from 0.1 to 1.9.
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

#ifndef MILLRACE_COMPILED
#include <millrace/image/augment/impl/augment_draws.inl>
#endif
