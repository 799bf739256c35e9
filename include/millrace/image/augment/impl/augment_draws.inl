// Definitions for augment_draws.hpp.
#pragma once

#include <millrace/image/augment/augment_draws.hpp>

#include <millrace/base/fixed_point.hpp>

#include <cstddef>
#include <iterator>
#include <span>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The operations that are drawn with equal probability, in the libraries' order.
inline constexpr augment_op torchvision_ops[] = {
    augment_op::identity,     augment_op::shear_x,   augment_op::shear_y,    augment_op::translate_x,
    augment_op::translate_y,  augment_op::rotate,    augment_op::brightness, augment_op::color,
    augment_op::contrast,     augment_op::sharpness, augment_op::posterize,  augment_op::solarize,
    augment_op::autocontrast, augment_op::equalize};
inline constexpr augment_op timm_ops[] = {augment_op::autocontrast, augment_op::equalize,    augment_op::invert,
                                          augment_op::rotate,       augment_op::posterize,   augment_op::solarize,
                                          augment_op::solarize_add, augment_op::color,       augment_op::contrast,
                                          augment_op::brightness,   augment_op::sharpness,   augment_op::shear_x,
                                          augment_op::shear_y,      augment_op::translate_x, augment_op::translate_y};
inline constexpr augment_op aug_mix_ops[] = {augment_op::shear_x,     augment_op::shear_y,      augment_op::translate_x,
                                             augment_op::translate_y, augment_op::rotate,       augment_op::posterize,
                                             augment_op::solarize,    augment_op::autocontrast, augment_op::equalize,
                                             augment_op::brightness,  augment_op::color,        augment_op::contrast,
                                             augment_op::sharpness};
inline constexpr std::size_t aug_mix_ops_without_enhancements = 9;

/// Returns the magnitudes of RandAugment and AutoAugment.
MILLRACE_INLINE torchvision_magnitudes rand_magnitudes(picture_size size, std::size_t bins) {
  return {.bins = bins,
          .across = 150.0 / 331.0 * static_cast<double>(size.width),
          .down = 150.0 / 331.0 * static_cast<double>(size.height)};
}

MILLRACE_INLINE void draw_sign_and_add(const torchvision_magnitudes& space, augment_op op, std::size_t bin, rng& random,
                                       photometric_ops& ops) {
  if (op == augment_op::identity) return;
  const bool negative = has_sign(op) && random.chance(0.5);
  ops.push_back(torchvision_op(space, op, bin, negative));
}

MILLRACE_INLINE void draw_rand_augment(picture_size size, rng& random, const rand_augment_options& options,
                                       photometric_ops& ops) {
  check_range("rand_augment_options.count", static_cast<double>(options.count), 0, 100);
  if (options.numbers == augment_numbers::torchvision) {
    check_range("rand_augment_options.bins", static_cast<double>(options.bins), 2, 1'000);
    check_range("rand_augment_options.magnitude", options.magnitude, 0, static_cast<double>(options.bins - 1));
    torchvision_magnitudes space = rand_magnitudes(size, options.bins);
    space.filter = static_cast<warp_filter>(options.filter.value_or(interpolation::nearest));
    space.fill = options.fill.value_or(rgb_color{});
    for (std::size_t i = 0; i < options.count; ++i)
      draw_sign_and_add(space, torchvision_ops[random.below(std::size(torchvision_ops))],
                        static_cast<std::size_t>(options.magnitude), random, ops);
    return;
  }
  check_range("rand_augment_options.magnitude", options.magnitude, 0, 10);
  check_range("rand_augment_options.deviation", options.deviation, 0, 1e9);
  check_range("rand_augment_options.probability", options.probability, 0, 1);
  const timm_levels space{.width = static_cast<double>(size.width),
                          .height = static_cast<double>(size.height),
                          .increasing = options.increasing,
                          .bits = options.increasing ? timm_bits::to_four : timm_bits::from_none,
                          .filter = options.filter,
                          .fill = options.fill.value_or(mean_color)};
  std::vector<augment_op> selected(options.count);
  for (augment_op& op : selected) op = timm_ops[random.below(std::size(timm_ops))];
  for (const augment_op op : selected)
    if (happens(random, options.probability))
      ops.push_back(timm_op(space, op, timm_level(random, options.magnitude, options.deviation), random));
}

MILLRACE_INLINE void draw_trivial_augment(picture_size, rng& random, const trivial_augment_options& options,
                                          photometric_ops& ops) {
  check_range("trivial_augment_options.bins", static_cast<double>(options.bins), 2, 1'000);
  const torchvision_magnitudes space{.bins = options.bins,
                                     .shear = 0.99,
                                     .across = 32,
                                     .down = 32,
                                     .degrees = 135,
                                     .enhancement = 0.99,
                                     .fewer_bits = 6,
                                     .filter = static_cast<warp_filter>(options.filter),
                                     .fill = options.fill};
  const augment_op op = torchvision_ops[random.below(std::size(torchvision_ops))];
  const std::size_t bin = has_magnitude(op) ? random.below(options.bins) : 0;
  draw_sign_and_add(space, op, bin, random, ops);
}

MILLRACE_INLINE std::span<const augment_pair, 25> names_and_values_of(augment_policy policy) noexcept {
  switch (policy) {
    case augment_policy::torchvision_cifar10: return cifar10_pairs;
    case augment_policy::torchvision_svhn: return svhn_pairs;
    case augment_policy::timm_v0:
    case augment_policy::timm_v0r: return efficientnet_pairs;
    default: return imagenet_pairs;
  }
}

MILLRACE_INLINE void draw_auto_augment(picture_size size, rng& random, const auto_augment_options& options,
                                       photometric_ops& ops) {
  check_range("auto_augment_options.deviation", options.deviation, 0, 1e9);
  const augment_policy policy = options.policy;
  const augment_pair pair = names_and_values_of(policy)[random.below(25)];
  if (policy <= augment_policy::torchvision_svhn) {
    torchvision_magnitudes space = rand_magnitudes(size, 10);
    space.filter = static_cast<warp_filter>(options.filter.value_or(interpolation::nearest));
    space.fill = options.fill.value_or(rgb_color{});
    for (const augment_step& step : pair)
      if (happens(random, step.tenths / 10.0)) draw_sign_and_add(space, step.op, step.level, random, ops);
    return;
  }
  const timm_levels space{.width = static_cast<double>(size.width),
                          .height = static_cast<double>(size.height),
                          .bits = policy == augment_policy::timm_original ? timm_bits::from_four
                                  : policy == augment_policy::timm_v0     ? timm_bits::from_none
                                                                          : timm_bits::to_four,
                          .filter = options.filter,
                          .fill = options.fill.value_or(mean_color)};
  for (const augment_step& step : pair)
    if (happens(random, step.tenths / 10.0))
      ops.push_back(timm_op(space, step.op, timm_level(random, step.level, options.deviation), random));
}

MILLRACE_INLINE void draw_aug_mix(picture_size size, rng& random, const aug_mix_options& options,
                                  photometric_ops& ops) {
  check_range("aug_mix_options.severity", static_cast<double>(options.severity), 1, 10);
  check_range("aug_mix_options.width", static_cast<double>(options.width), 1, 100);
  check_range("aug_mix_options.depth", static_cast<double>(options.depth.value_or(1)), 1, 100);
  const torchvision_magnitudes space{.bins = 10,
                                     .across = static_cast<double>(size.width) / 3.0,
                                     .down = static_cast<double>(size.height) / 3.0,
                                     .bits = 4,
                                     .filter = static_cast<warp_filter>(options.filter),
                                     .fill = options.fill};
  const std::size_t choices = options.all_operations ? std::size(aug_mix_ops) : aug_mix_ops_without_enhancements;
  // Exponentially distributed numbers, divided by their sum, have a Dirichlet distribution.
  const unsigned_128 own = fixed_exponential(random), others = unsigned_128{fixed_exponential(random)} + 1;
  std::vector<std::uint64_t> upto(options.width);
  std::uint64_t total = 0;
  for (std::uint64_t& sum : upto) sum = total += fixed_exponential(random) + 1;
  // Sums of weights are rounded, not the weights, so that the rounded weights have the exact total.
  const auto rounded_weight = [&](std::uint64_t part) {
    const unsigned_128 of_all = (own << 32) + (others << 32) * part / total;
    return static_cast<std::int32_t>((of_all * photometric_op::total_weight / (own + others) + (1U << 31)) >> 32);
  };
  const std::size_t mix = ops.size();
  std::int32_t before = rounded_weight(0);
  ops.push_back({.kind = photometric_kind::mix, .numbers = {static_cast<std::int32_t>(options.width), 0, before}});
  for (const std::uint64_t sum : upto) {
    const std::size_t depth = options.depth ? *options.depth : 1 + random.below(3);
    const std::int32_t weight = rounded_weight(sum) - before;
    before += weight;
    ops.push_back({.kind = photometric_kind::chain, .numbers = {static_cast<std::int32_t>(depth), weight}});
    for (std::size_t i = 0; i < depth; ++i) {
      const augment_op op = aug_mix_ops[random.below(choices)];
      const std::size_t bin = has_magnitude(op) ? random.below(options.severity) : 0;
      draw_sign_and_add(space, op, bin, random, ops);
    }
  }
  ops[mix].numbers[1] = static_cast<std::int32_t>(ops.size() - mix - 1);
}

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
