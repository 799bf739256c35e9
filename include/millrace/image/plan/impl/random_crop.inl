// Definitions for random_crop.hpp.
#pragma once

#include <millrace/image/plan/random_crop.hpp>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE crop_box random_crop_box(picture_size size, rng& random, const random_crop_options& options) {
  const fixed_crop_options o(options);
  const std::uint64_t width = size.width, height = size.height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const auto share = static_cast<std::uint64_t>(fixed_between(random, o.scale_min, o.scale_max));
    const std::int64_t log_ratio = fixed_between(random, o.log_ratio_min, o.log_ratio_max);
    const std::uint64_t area = width * height * share;
    const std::uint64_t w = side_of(area, fixed_exp2(log_ratio));
    const std::uint64_t h = side_of(area, fixed_exp2(-log_ratio));
    if (w == 0 || h == 0 || w > width || h > height) continue;
    const std::uint64_t top = random.below(height - h + 1);
    const std::uint64_t left = random.below(width - w + 1);
    return {.left = left, .top = top, .width = w, .height = h};
  }
  std::uint64_t w = width, h = height;
  const std::uint64_t ratio_scale = std::uint64_t{1} << 32;
  if (width * ratio_scale < o.ratio_min * height) h = rounded_quotient(width, o.ratio_min);
  else if (width * ratio_scale > o.ratio_max * height) w = rounded_product(height, o.ratio_max);
  w = w == 0 ? 1 : w > width ? width : w;
  h = h == 0 ? 1 : h > height ? height : h;
  return {.left = (width - w) / 2, .top = (height - h) / 2, .width = w, .height = h};
}

}   // namespace detail

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>
