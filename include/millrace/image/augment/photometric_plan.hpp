// A list of operations on the colors of an image, after it has been cropped and resized.
//
//   mr::photometric_plan plan;
//   plan.color_jitter({.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1}, rng)
//       .random_grayscale(rng, 0.2)
//       .rand_augment({.width = 224, .height = 224}, rng);
//   plan.run(row, 224, 224, scratch);                                // u8 RGB [224, 224, 3], in place
//   const auto fixed = mr::photometric_plan().brightness(1.2).solarize(128);
//   mr::picture p = mr::jpeg(r["jpg"]).random_resized_crop(224, rng).apply(plan);   // runs when p is rendered
//
// Operations mean what they mean in Pillow 13, bit for bit. gaussian_blur() is torchvision's, within one level.
// Operations with an `rng` are drawn when they are called. The list then holds what has been drawn. The draws use
// integers and correctly rounded operations only. So the list does not depend on compiler, flags or CPU, and neither do
// the pixels.
// A `probability` of 1 takes no number from the stream. Each call's comment says what it draws, in that order.
//
// Errors: setup_error if a number is outside its range. Threads: a plan is a value; run() is const.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/random.hpp>
#include <millrace/image/augment/photometric_options.hpp>
#include <millrace/image/color/photometric_op.hpp>
#include <millrace/image/plan/random_crop.hpp>
#include <millrace/image/plan/row_operation.hpp>
#include <millrace/item/scratch.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

class photometric_plan;

namespace detail {

std::span<const photometric_op> operations_of(const photometric_plan& plan) noexcept;

}  // namespace detail

/// A list of photometric operations.
class photometric_plan {
 public:
  /// Multiplies all values; factor 0 to 1000.
  photometric_plan& brightness(double factor);
  /// Blends with the mean gray; factor 0 to 1000, 1 changes nothing.
  photometric_plan& contrast(double factor);
  /// Blends with the gray of each pixel; factor 0 to 1000, 1 changes nothing.
  photometric_plan& saturation(double factor);
  /// Blends with a smoothed image; factor 0 to 1000, 1 changes nothing.
  photometric_plan& sharpness(double factor);
  /// Turns hues by a share of the circle, -0.5 to 0.5. Pillow keeps hues as bytes, so even 0 changes some pixels.
  photometric_plan& hue(double share);
  /// Makes the three channels the gray of the pixel.
  photometric_plan& grayscale();
  /// Replaces each value x by 255 - x.
  photometric_plan& invert();
  /// Keeps the highest bits of each value, 0 to 8.
  photometric_plan& posterize(std::size_t bits);
  /// Inverts values from the threshold on, 0 to 256.
  photometric_plan& solarize(double threshold = 128);
  /// Adds 0 to 255 to values below 128.
  photometric_plan& solarize_add(std::size_t amount);
  /// Spreads the values of each channel over 0 to 255.
  photometric_plan& autocontrast();
  /// Makes the values of each channel about equally frequent.
  photometric_plan& equalize();
  /// Blurs with torchvision's kernel of size x size pixels; size is odd, sigma is above 0.
  photometric_plan& gaussian_blur(std::size_t size, double sigma);
  /// Blurs with Pillow's boxes; the radius, 0 to 1000, is what others call sigma.
  photometric_plan& pillow_blur(double radius);
  /// Rotates around the middle, counter-clockwise; -1000000 to 1000000 degrees.
  photometric_plan& rotate(double degrees, const warp_options& options = {});
  /// Takes each row from `factor` columns more to the right than the one above it; -1000 to 1000.
  photometric_plan& shear_x(double factor, const warp_options& options = {});
  /// Takes each column from `factor` rows further down than the one left of it; -1000 to 1000.
  photometric_plan& shear_y(double factor, const warp_options& options = {});
  /// Moves the image to the right and down, in pixels; -65535 to 65535.
  photometric_plan& translate(double right, double down, const warp_options& options = {});
  /// Fills a box, as far as it lies in the image.
  photometric_plan& erase(const crop_box& box, const rgb_color& fill = mean_color);

  /// Draws the order of the four, then a factor for each of brightness, contrast, saturation and hue that has a range.
  photometric_plan& color_jitter(const color_jitter_options& options, rng& random);
  /// Draws whether the image becomes gray.
  photometric_plan& random_grayscale(rng& random, double probability = 0.1);
  /// Draws whether the image is inverted.
  photometric_plan& random_invert(rng& random, double probability = 0.5);
  /// Draws whether the image is posterized.
  photometric_plan& random_posterize(std::size_t bits, rng& random, double probability = 0.5);
  /// Draws whether the image is solarized.
  photometric_plan& random_solarize(double threshold, rng& random, double probability = 0.5);
  /// Draws whether the sharpness is changed.
  photometric_plan& random_sharpness(double factor, rng& random, double probability = 0.5);
  /// Draws whether autocontrast is done.
  photometric_plan& random_autocontrast(rng& random, double probability = 0.5);
  /// Draws whether the image is equalized.
  photometric_plan& random_equalize(rng& random, double probability = 0.5);
  /// Draws sigma.
  photometric_plan& random_gaussian_blur(const gaussian_blur_options& options, rng& random);
  /// Draws the radius.
  photometric_plan& random_pillow_blur(const pillow_blur_options& options, rng& random);

  /// RandAugment (Cubuk et al. 2020) for images of this size. Draws, for each operation: torchvision: which one, its
  /// sign. timm: which ones; for each whether, its level, its sign, the interpolation.
  photometric_plan& rand_augment(picture_size size, rng& random, const rand_augment_options& options = {});
  /// TrivialAugment (Mueller, Hutter 2021), wide. Draws the operation, its bin, its sign.
  photometric_plan& trivial_augment(picture_size size, rng& random, const trivial_augment_options& options = {});
  /// AutoAugment (Cubuk et al. 2019). Draws the pair, and as rand_augment() for each of both: whether, and so on.
  photometric_plan& auto_augment(picture_size size, rng& random, const auto_augment_options& options = {});
  /// AugMix (Hendrycks et al. 2020). Draws the share of the image itself and those of the chains. Then it draws each
  /// chain: its depth, and for each operation which one, its bin, its sign.
  photometric_plan& aug_mix(picture_size size, rng& random, const aug_mix_options& options = {});
  /// Random erasing (Zhong et al. 2020). Draws whether; the number of boxes if there may be several. Then it draws, up
  /// to ten times for each, the area and the ratio, and, if the box fits, its place.
  photometric_plan& random_erasing(picture_size size, rng& random, const random_erasing_options& options = {});

  /// Appends another plan.
  photometric_plan& apply(const photometric_plan& other);

  /// Returns whether nothing will be done.
  bool empty() const noexcept { return ops_.empty(); }

  /// Does the operations to u8 RGB [height, width, 3], in place. Throws setup_error if `rgb` has another size.
  void run(std::span<std::uint8_t> rgb, std::size_t width, std::size_t height, scratch& s) const;

  /// Returns a copy of the plan for picture::apply().
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

}  // namespace detail

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/augment/impl/photometric_plan.inl>
#endif
