// Definitions for random_erase.hpp.
#pragma once

#include <millrace/image/plan/random_erase.hpp>

#include <string>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void check_erase_options(const random_erase_options& o) {
  const auto refuse = [](const char* what, double low, double high, const char* expected, const char* hint) {
    throw setup_error(std::string("the ") + what + " of random_erase is out of range: got " + std::to_string(low) +
                          " to " + std::to_string(high) + ", expected an interval in " + expected,
                      hint);
  };
  if (!(o.probability >= 0 && o.probability <= 1))
    throw setup_error(
        "the probability of random_erase is out of range: got " + std::to_string(o.probability) + ", expected 0 to 1",
        "Pass a probability");
  if (!(o.scale_min > 0 && o.scale_min <= o.scale_max && o.scale_max <= 1))
    refuse("scale", o.scale_min, o.scale_max, "(0, 1]", "Pass fractions of the image's area, such as 0.02 and 0.33");
  if (!(o.ratio_min >= 1.0 / 1024 && o.ratio_min <= o.ratio_max && o.ratio_max <= 1024))
    refuse("ratio", o.ratio_min, o.ratio_max, "[1/1024, 1024]", "Pass height / width, such as 0.3 and 3.3");
}

MILLRACE_INLINE erased_box random_erase_box(picture_size size, rng& random, const random_erase_options& options) {
  check_erase_options(options);
  if (!random.chance(options.probability)) return {};
  const fixed_crop_options o({.scale_min = options.scale_min,
                              .scale_max = options.scale_max,
                              .ratio_min = options.ratio_min,
                              .ratio_max = options.ratio_max});
  for (int attempt = 0; attempt < 10; ++attempt) {
    const auto share = static_cast<std::uint64_t>(fixed_between(random, o.scale_min, o.scale_max));
    const std::int64_t log_ratio = fixed_between(random, o.log_ratio_min, o.log_ratio_max);
    const std::uint64_t area = std::uint64_t{size.width} * size.height * share;
    const std::uint64_t height = side_of(area, fixed_exp2(log_ratio));
    const std::uint64_t width = side_of(area, fixed_exp2(-log_ratio));
    if (width >= size.width || height >= size.height) continue;
    const std::uint64_t top = random.below(size.height - height + 1);
    const std::uint64_t left = random.below(size.width - width + 1);
    return {.box = {.left = left, .top = top, .width = width, .height = height},
            .fill = options.fill,
            .noise_key = random.bits()};
  }
  return {};
}

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
