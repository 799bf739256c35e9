// The published policies of AutoAugment, as tables.
//
//   const mr::detail::augment_pair& pair = mr::detail::imagenet_pairs[0];
//   pair[0].op;                                    // posterize; its probability is pair[0].tenths / 10
//
// Threads: any.
// Sources: Cubuk, Zoph, Mane, Vasudevan, Le: AutoAugment, CVPR 2019; the policy of TensorFlow's EfficientNet. The
// tables equal those of torchvision and timm.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

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
