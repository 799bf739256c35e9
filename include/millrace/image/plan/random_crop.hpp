// Draws a random crop box by the rule of torchvision's RandomResizedCrop, with integer arithmetic only.
//
//   mr::crop_box box = mr::detail::random_crop_box({.width = 500, .height = 375}, random, {.scale_min = 0.08});
//
// The same random numbers produce the same crop on every compiler. The rule has up to ten attempts. Each attempt draws:
// - the area as a share of the image's area, uniform in [scale_min, scale_max];
// - the aspect ratio (width / height), log-uniform in [ratio_min, ratio_max];
// - a uniform position, if a box of that size fits.
//
// If no attempt draws a box that fits, the result is the largest central crop with an allowed ratio.
// Areas and logarithms are integers in units of 2^-32, because floating-point results depend on the compiler.
// Units: pixels. Errors: setup_error if an option is outside its range. Threads: any thread; do not share an rng
// between threads.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/fixed_point.hpp>
#include <millrace/base/random.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// A box in integer pixels; left = top = 0 is the top left corner of the image.
struct crop_box {
  std::size_t left = 0, top = 0, width = 0, height = 0;
  friend bool operator==(const crop_box&, const crop_box&) = default;
};

/// The areas and aspect ratios that a random crop may have.
struct random_crop_options {
  double scale_min = 0.08;        ///< minimum area, as a fraction of the image's area; 0 < scale_min <= scale_max
  double scale_max = 1.0;         ///< maximum area, as a fraction of the image's area; at most 1
  double ratio_min = 3.0 / 4.0;   ///< minimum width / height; 1/1024 <= ratio_min <= ratio_max
  double ratio_max = 4.0 / 3.0;   ///< maximum width / height; at most 1024
};

/// The size of an image in pixels.
struct picture_size {
  std::size_t width = 0, height = 0;
};

namespace detail {

/// Checked options of a random crop, in fixed point. Throws setup_error if an option is outside its range.
struct fixed_crop_options {
  std::int64_t scale_min, scale_max;           // 32 fraction bits
  std::uint64_t ratio_min, ratio_max;          // 32 fraction bits
  std::int64_t log_ratio_min, log_ratio_max;   // base 2, 32 fraction bits

  explicit constexpr fixed_crop_options(const random_crop_options& o)
      : scale_min(0), scale_max(0), ratio_min(0), ratio_max(0), log_ratio_min(0), log_ratio_max(0) {
    if (!(o.scale_min > 0 && o.scale_min <= o.scale_max && o.scale_max <= 1))
      throw setup_error("the scale of a random crop is out of range: got " + std::to_string(o.scale_min) + " to " +
                            std::to_string(o.scale_max) + ", expected an interval in (0, 1]",
                        "Pass fractions of the image's area, such as 0.08 and 1");
    if (!(o.ratio_min >= 1.0 / 1024 && o.ratio_min <= o.ratio_max && o.ratio_max <= 1024))
      throw setup_error("the ratio of a random crop is out of range: got " + std::to_string(o.ratio_min) + " to " +
                            std::to_string(o.ratio_max) + ", expected an interval in [1/1024, 1024]",
                        "Pass width / height, such as 3.0 / 4 and 4.0 / 3");
    scale_min = static_cast<std::int64_t>(to_fixed(o.scale_min));
    scale_max = static_cast<std::int64_t>(to_fixed(o.scale_max));
    ratio_min = to_fixed(o.ratio_min);
    ratio_max = to_fixed(o.ratio_max);
    log_ratio_min = fixed_log2(ratio_min);
    log_ratio_max = fixed_log2(ratio_max);
  }
};

/// Returns a side of a box: sqrt(area * ratio), rounded to nearest. Area and ratio have 32 fraction bits.
constexpr std::uint64_t side_of(std::uint64_t area, std::uint64_t ratio) noexcept {
  const auto root = integer_sqrt(unsigned_128{area} * ratio >> 40);   // 12 fraction bits
  return (root + (1U << 11)) >> 12;
}

/// Returns a * b, rounded to nearest; rounded_quotient() returns a / b. `b` has 32 fraction bits.
constexpr std::uint64_t rounded_product(std::uint64_t a, std::uint64_t b) noexcept {
  return static_cast<std::uint64_t>((unsigned_128{a} * b + (std::uint64_t{1} << 31)) >> 32);
}
constexpr std::uint64_t rounded_quotient(std::uint64_t a, std::uint64_t b) noexcept { return ((a << 32) + b / 2) / b; }

/// Returns a random crop of an image of `size`, 1 to 65535 pixels on each side.
/// Throws setup_error if an option is outside its range.
crop_box random_crop_box(picture_size size, rng& random, const random_crop_options& options = {});

}   // namespace detail

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/plan/impl/random_crop.inl>
#endif
