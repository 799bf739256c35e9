// Options of random photometric operations: jitter, blurs, erasing, automatic augmentation.
//
//   const mr::color_jitter_options jitter{.brightness = 0.4, .contrast = 0.4, .hue = 0.1, .probability = 0.8};
//   const mr::color_jitter_options darker{.brightness = {0.5, 0.9}};
//   const mr::rand_augment_options timm{.numbers = mr::augment_numbers::timm, .magnitude = 9};
//
// Results equal those of Pillow. Exception: gaussian_blur_options select a blur with torchvision's kernel.
// Errors: none here; photometric_plan checks the options. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/plan/rgb_color.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

/// How pixels of rotated, sheared and translated images are interpolated.
enum class interpolation : std::uint8_t {
  nearest,    ///< the nearest pixel
  bilinear,   ///< interpolates 2 x 2 pixels
  bicubic     ///< interpolates 4 x 4 pixels
};

/// The mean color of ImageNet, which normalization maps to 0.
inline constexpr rgb_color mean_color = {124, 116, 104};

/// The range from which a jitter draws a factor. As in torchvision, one number or two ends define the range.
struct color_factors {
  double low = 1;    ///< minimum factor
  double high = 1;   ///< maximum factor

  /// No change.
  constexpr color_factors() noexcept = default;
  /// The range from 1 - v (at least 0) to 1 + v.
  constexpr color_factors(double v) noexcept : low(v < 1 ? 1 - v : 0), high(1 + v) {}
  /// From `least` to `highest`.
  constexpr color_factors(double least, double highest) noexcept : low(least), high(highest) {}
};

/// The range from which a jitter draws the shift of hues, as a fraction of the color circle, -0.5 to 0.5. One number or
/// two ends define the range.
struct hue_shifts {
  double low = 0;    ///< minimum shift
  double high = 0;   ///< maximum shift

  /// No change.
  constexpr hue_shifts() noexcept = default;
  /// The range from -v to v.
  constexpr hue_shifts(double v) noexcept : low(-v), high(v) {}
  /// From `least` to `highest`.
  constexpr hue_shifts(double least, double highest) noexcept : low(least), high(highest) {}
};

/// Options of a color jitter. The order of its operations is random, as in torchvision.
struct color_jitter_options {
  color_factors brightness{};   ///< range of the factor; 0 produces black
  color_factors contrast{};     ///< range of the factor; 0 produces the mean gray
  color_factors saturation{};   ///< range of the factor; 0 produces gray
  hue_shifts hue{};             ///< range of the hue shift
  double probability = 1;       ///< probability of the jitter
};

/// Options of a random blur with torchvision's kernel.
struct gaussian_blur_options {
  std::size_t size = 9;     ///< kernel size in pixels; odd, at most 1001
  double sigma_min = 0.1;   ///< minimum sigma, in pixels; above 0
  double sigma_max = 2;     ///< maximum sigma, in pixels
  double probability = 1;   ///< probability of the blur
};

/// Options of a random blur with Pillow's boxes.
struct pillow_blur_options {
  double radius_min = 0.1;   ///< minimum sigma in pixels; Pillow's name for sigma is radius
  double radius_max = 2;     ///< maximum radius, at most 1000
  double probability = 1;    ///< probability of the blur
};

/// Options of random erasing, with torchvision's defaults. timm's default areas are 0.02 to 1/3. timm's default ratios
/// are 0.3 to 1/0.3.
struct random_erasing_options {
  double probability = 0.5;      ///< probability of erasing
  double scale_min = 0.02;       ///< minimum area of a box, as a fraction of the image's area
  double scale_max = 0.33;       ///< maximum area
  double ratio_min = 0.3;        ///< minimum height / width
  double ratio_max = 3.3;        ///< maximum height / width
  std::size_t max_boxes = 1;     ///< maximum number of boxes; the number is random, and all boxes share the area
  rgb_color fill = mean_color;   ///< color of the boxes
};

/// Options of operations that move pixels.
struct warp_options {
  interpolation filter = interpolation::nearest;   ///< interpolation between pixels
  rgb_color fill{};                                ///< color of pixels from outside the image
};

/// The library whose parameters an automatic augmentation uses.
enum class augment_numbers : std::uint8_t {
  torchvision,   ///< 14 operations; a magnitude is an index, 0 to bins - 1; by default, nearest pixel and black fill
  timm           ///< 15 operations; a magnitude is a level, 0 to 10; by default, bilinear or bicubic, mean color fill
};

/// Options of RandAugment.
struct rand_augment_options {
  augment_numbers numbers = augment_numbers::torchvision;   ///< the library
  std::size_t count = 2;                                    ///< operations per image
  double magnitude = 9;                                     ///< torchvision: 0 to bins - 1; timm: level, 0 to 10
  std::size_t bins = 31;                                    ///< torchvision: number of bins
  double deviation = 0.5;     ///< timm: standard deviation of the level; if above 100, uniform levels, 0 to `magnitude`
  bool increasing = true;     ///< timm: a higher level increases the effect of all operations ("inc1")
  double probability = 0.5;   ///< timm: probability of each operation
  std::optional<interpolation> filter{};   ///< interpolation between pixels; default: see augment_numbers
  std::optional<rgb_color> fill{};         ///< color of pixels from outside the image; default: see augment_numbers
};

/// Options of TrivialAugmentWide, with torchvision's parameters.
struct trivial_augment_options {
  std::size_t bins = 31;                           ///< number of magnitudes
  interpolation filter = interpolation::nearest;   ///< interpolation between pixels
  rgb_color fill{};                                ///< color of pixels from outside the image
};

/// The published policies of AutoAugment. Each policy is a list of pairs of operations. One pair is drawn for each
/// image.
enum class augment_policy : std::uint8_t {
  torchvision_imagenet,   ///< ImageNet policy of the paper, with torchvision's parameters
  torchvision_cifar10,    ///< CIFAR-10 policy of the paper, with torchvision's parameters
  torchvision_svhn,       ///< SVHN policy of the paper, with torchvision's parameters
  timm_original,          ///< ImageNet policy of the paper, with timm's parameters
  timm_originalr,         ///< timm_original with timm's variant of posterize
  timm_v0,                ///< TensorFlow's policy for EfficientNet
  timm_v0r                ///< timm_v0 with timm's variant of posterize
};

/// Options of AutoAugment.
struct auto_augment_options {
  augment_policy policy = augment_policy::torchvision_imagenet;   ///< the list of pairs
  double deviation = 0;                    ///< timm: standard deviation of each level; if above 100, uniform levels
  std::optional<interpolation> filter{};   ///< interpolation between pixels; default: see augment_numbers
  std::optional<rgb_color> fill{};         ///< color of pixels from outside the image; default: see augment_numbers
};

/// Options of AugMix, with torchvision's parameters and alpha = 1.
struct aug_mix_options {
  std::size_t severity = 3;                         ///< 1 to 10; the magnitudes are the bins 0 to severity - 1
  std::size_t width = 3;                            ///< number of chains that are mixed
  std::optional<std::size_t> depth{};               ///< operations per chain; by default a random number, 1 to 3
  bool all_operations = true;                       ///< includes brightness, contrast, color and sharpness
  interpolation filter = interpolation::bilinear;   ///< interpolation between pixels
  rgb_color fill{};                                 ///< color of pixels from outside the image
};

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>
