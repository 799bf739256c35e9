// A list of operations on the pixels of an image. The operations run after the image has been cropped and resized.
//
//   mr::photometric_plan plan;
//   plan.color_jitter({.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1}, rng)
//       .random_grayscale(rng, 0.2)
//       .rand_augment({.width = 224, .height = 224}, rng);
//   plan.run(row, 224, 224, scratch);                                // u8 RGB [224, 224, 3], in place
//   const auto fixed = mr::photometric_plan().brightness(1.2).solarize(128);
//   mr::picture p = mr::jpeg(r["jpg"]).random_resized_crop(224, rng).apply(plan);   // runs when p is rendered
//
// Results are bit-identical to Pillow 13. Exception: gaussian_blur() computes torchvision's blur, and its values differ
// from torchvision's by at most 1. Calls with an `rng` draw immediately and record the drawn operations. The operations
// and the pixels do not depend on compiler, flags or CPU. A call with a probability below 1 first draws whether to run
// the operation. The comments of the calls list all other draws.
//
// Errors: setup_error if a number is outside its range. Threads: not synchronized; several threads may call run() at
// the same time, each with its own scratch.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/random.hpp>
#include <millrace/base/version.hpp>
#include <millrace/image/color/photometric_op.hpp>
#include <millrace/image/plan/padding.hpp>
#include <millrace/image/plan/random_crop.hpp>
#include <millrace/image/plan/row_operation.hpp>
#include <millrace/item/scratch.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

// Options of random photometric operations: jitter, blurs, erasing, automatic augmentation.
//
//   const mr::color_jitter_options jitter{.brightness = 0.4, .contrast = 0.4, .hue = 0.1, .probability = 0.8};
//   const mr::color_jitter_options darker{.brightness = {0.5, 0.9}};
//   const mr::rand_augment_options timm{.numbers = mr::augment_numbers::timm, .magnitude = 9};
//
// Results equal those of Pillow. Exception: gaussian_blur_options select a blur with torchvision's kernel.
// Errors: none here; photometric_plan checks the options. Threads: not synchronized.

/// How pixels of rotated, sheared and translated images are interpolated.
enum class interpolation : std::uint8_t {
  nearest,    ///< the nearest pixel
  bilinear,   ///< interpolates 2 x 2 pixels
  bicubic     ///< interpolates 4 x 4 pixels
};

/// The mean color of ImageNet, which normalization maps to 0.
inline constexpr rgb_color mean_color = {124, 116, 104};

/// The range from which a jitter draws a factor. Initialize it with one number or with both ends, as in torchvision.
struct color_factors {
  double low = 1;    ///< minimum factor
  double high = 1;   ///< maximum factor

  /// The range that changes nothing.
  constexpr color_factors() noexcept = default;
  /// The range from 1 - v (at least 0) to 1 + v.
  constexpr color_factors(double v) noexcept : low(v < 1 ? 1 - v : 0), high(1 + v) {}
  /// The range from `least` to `highest`.
  constexpr color_factors(double least, double highest) noexcept : low(least), high(highest) {}
};

/// The range from which a jitter draws the shift of hues, as a fraction of the color circle, -0.5 to 0.5. Initialize it
/// with one number or with both ends.
struct hue_shifts {
  double low = 0;    ///< minimum shift
  double high = 0;   ///< maximum shift

  /// The range that changes nothing.
  constexpr hue_shifts() noexcept = default;
  /// The range from -v to v.
  constexpr hue_shifts(double v) noexcept : low(-v), high(v) {}
  /// The range from `least` to `highest`.
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

/// Options of a random blur that equals Pillow's GaussianBlur (repeated box blurs).
struct pillow_blur_options {
  double radius_min = 0.1;   ///< minimum radius in pixels; `radius` is Pillow's name for sigma
  double radius_max = 2;     ///< maximum radius, at most 1000
  double probability = 1;    ///< probability of the blur
};

/// Options of random erasing, with torchvision's defaults. timm's default areas are 0.02 to 1/3. timm's default ratios
/// are 0.3 to 1/0.3.
struct random_erasing_options {
  double probability = 0.5;    ///< probability of erasing
  double scale_min = 0.02;     ///< minimum area of a box, as a fraction of the image's area
  double scale_max = 0.33;     ///< maximum area
  double ratio_min = 0.3;      ///< minimum height / width
  double ratio_max = 3.3;      ///< maximum height / width
  std::size_t max_boxes = 1;   ///< the number n of boxes is random, 1 to max_boxes; each box has 1/n of the drawn area
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
  timm           ///< 15 operations; a magnitude is a level, 0 to 10; default: random bilinear/bicubic, mean color fill
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
  std::size_t severity = 3;                         ///< 1 to 10; each magnitude is a random index, 0 to severity - 1
  std::size_t width = 3;                            ///< number of chains that are mixed
  std::optional<std::size_t> depth{};               ///< operations per chain; by default a random number, 1 to 3
  bool all_operations = true;                       ///< includes brightness, contrast, color and sharpness
  interpolation filter = interpolation::bilinear;   ///< interpolation between pixels
  rgb_color fill{};                                 ///< color of pixels from outside the image
};

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>

namespace millrace { inline namespace MILLRACE_ABI {

class photometric_plan;

namespace detail {

std::span<const photometric_op> operations_of(const photometric_plan& plan) noexcept;

}   // namespace detail

/// A list of photometric operations.
class photometric_plan {
 public:
  /// Multiplies all values by a factor of 0 to 1000.
  photometric_plan& brightness(double factor);
  /// Changes the contrast. The factor is from 0, which produces the mean gray, to 1000; 1 changes nothing.
  photometric_plan& contrast(double factor);
  /// Changes the saturation. The factor is from 0, which produces the gray of each pixel, to 1000; 1 changes nothing.
  photometric_plan& saturation(double factor);
  /// Changes the sharpness. The factor is from 0, which produces a smoothed image, to 1000; 1 changes nothing.
  photometric_plan& sharpness(double factor);
  /// Shifts hues by a fraction of the color circle, -0.5 to 0.5. Pillow stores hues as bytes, so even a shift of 0
  /// changes pixels.
  photometric_plan& hue(double share);
  /// Sets the three channels to the gray of the pixel.
  photometric_plan& grayscale();
  /// Replaces each value x by 255 - x.
  photometric_plan& invert();
  /// Keeps the highest `bits` bits of each value; 0 to 8.
  photometric_plan& posterize(std::size_t bits);
  /// Inverts values at or above the threshold, which is 0 to 256.
  photometric_plan& solarize(double threshold = 128);
  /// Adds `amount`, 0 to 255, to values below 128.
  photometric_plan& solarize_add(std::size_t amount);
  /// Scales the values of each channel to the range 0 to 255.
  photometric_plan& autocontrast();
  /// Equalizes the histogram of each channel.
  photometric_plan& equalize();
  /// Blurs with torchvision's kernel of size x size pixels; size is odd, sigma is above 0.
  photometric_plan& gaussian_blur(std::size_t size, double sigma);
  /// Blurs with Pillow's box blurs, which approximate a Gaussian blur. `radius` is sigma, as in Pillow; 0 to 1000.
  photometric_plan& pillow_blur(double radius);
  /// Rotates around the center, counter-clockwise; -1000000 to 1000000 degrees.
  photometric_plan& rotate(double degrees, const warp_options& options = {});
  /// Shears horizontally: moves each row to the left by `factor` pixels more than the row above it. The factor is -1000
  /// to 1000.
  photometric_plan& shear_x(double factor, const warp_options& options = {});
  /// Shears vertically: moves each column up by `factor` pixels more than the column to its left. The factor is -1000
  /// to 1000.
  photometric_plan& shear_y(double factor, const warp_options& options = {});
  /// Translates the image to the right and down, in pixels; -65535 to 65535.
  photometric_plan& translate(double right, double down, const warp_options& options = {});
  /// Fills a box, clipped to the image.
  photometric_plan& erase(const crop_box& box, const rgb_color& fill = mean_color);

  /// Changes brightness, contrast, saturation and hue by random factors, in a random order. Draws the order first. Then
  /// draws the factors of brightness, contrast, saturation and hue, in this sequence, if their ranges are set.
  photometric_plan& color_jitter(const color_jitter_options& options, rng& random);
  /// Converts to gray with this probability.
  photometric_plan& random_grayscale(rng& random, double probability = 0.1);
  /// Inverts with this probability.
  photometric_plan& random_invert(rng& random, double probability = 0.5);
  /// Posterizes to `bits` bits with this probability.
  photometric_plan& random_posterize(std::size_t bits, rng& random, double probability = 0.5);
  /// Solarizes with this probability.
  photometric_plan& random_solarize(double threshold, rng& random, double probability = 0.5);
  /// Changes the sharpness with this probability.
  photometric_plan& random_sharpness(double factor, rng& random, double probability = 0.5);
  /// Runs autocontrast with this probability.
  photometric_plan& random_autocontrast(rng& random, double probability = 0.5);
  /// Equalizes with this probability.
  photometric_plan& random_equalize(rng& random, double probability = 0.5);
  /// Blurs with torchvision's kernel and a random sigma. Draws sigma.
  photometric_plan& random_gaussian_blur(const gaussian_blur_options& options, rng& random);
  /// Blurs with Pillow's box blurs and a random radius. Draws the radius.
  photometric_plan& random_pillow_blur(const pillow_blur_options& options, rng& random);

  /// RandAugment (Cubuk et al. 2020) for images of this size. For torchvision, draws the kind and the sign of each
  /// operation. For timm, first draws the kinds of all operations. Then draws, for each operation: whether to run it,
  /// its level, its sign and its interpolation.
  photometric_plan& rand_augment(picture_size size, rng& random, const rand_augment_options& options = {});
  /// TrivialAugmentWide (Mueller, Hutter 2021). Draws the operation, the bin of its magnitude, and its sign.
  photometric_plan& trivial_augment(picture_size size, rng& random, const trivial_augment_options& options = {});
  /// AutoAugment (Cubuk et al. 2019). Draws the pair of operations. Then draws, for each operation, whether to run it,
  /// and its parameters.
  photometric_plan& auto_augment(picture_size size, rng& random, const auto_augment_options& options = {});
  /// AugMix (Hendrycks et al. 2020). Draws the weight of the image and the weights of the chains. For each chain, draws
  /// its depth. For each operation of the chain, draws the kind, the bin and the sign.
  photometric_plan& aug_mix(picture_size size, rng& random, const aug_mix_options& options = {});
  /// Random erasing (Zhong et al. 2020). Draws the number of boxes if max_boxes is above 1. For each box, draws the
  /// area and the ratio until the box fits, but at most ten times. If the box fits, draws its position.
  photometric_plan& random_erasing(picture_size size, rng& random, const random_erasing_options& options = {});

  /// Appends the operations of another plan.
  photometric_plan& apply(const photometric_plan& other);

  /// Returns whether the list has no operations.
  bool empty() const noexcept { return ops_.empty(); }

  /// Applies the operations to u8 RGB [height, width, 3], in place. Throws setup_error if `rgb` has another size.
  void run(std::span<std::uint8_t> rgb, std::size_t width, std::size_t height, scratch& s) const;

  /// Returns a copy of the plan as an operation for picture::apply().
  operator std::shared_ptr<const row_operation>() const;

  friend bool operator==(const photometric_plan&, const photometric_plan&) = default;

 private:
  friend std::span<const detail::photometric_op> detail::operations_of(const photometric_plan& plan) noexcept;

  photometric_plan& add(const detail::photometric_op& op);

  std::vector<detail::photometric_op> ops_;
};

namespace detail {

/// Returns the operations, for tests.
inline std::span<const photometric_op> operations_of(const photometric_plan& plan) noexcept { return plan.ops_; }

}   // namespace detail

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/augment/impl/photometric_plan.inl>
#endif
