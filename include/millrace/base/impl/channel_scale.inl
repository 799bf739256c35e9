// Definitions for channel_scale.hpp.
#pragma once

#include <millrace/base/channel_scale.hpp>

#include <millrace/base/error.hpp>

#include <string>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE channel_scale channel_scale_of(double mean, double deviation, std::size_t channel) {
  const channel_scale result{static_cast<float>(1 / (255 * deviation)), static_cast<float>(-mean / deviation)};
  // Uses built-ins, because <cmath> would add a sixth to the compile time of the library.
  const float largest = __builtin_fmaf(255.0F, result.scale, result.bias);
  const auto is_finite = [](float x) { return __builtin_isfinite(x) != 0; };
  if (!(deviation > 0) || !is_finite(result.scale) || !is_finite(result.bias) || !is_finite(largest))
    throw setup_error("the normalization of pixels is invalid: got mean " + std::to_string(mean) + " and std " +
                          std::to_string(deviation) + " in channel " + std::to_string(channel),
                      "Use finite numbers, and a std above 0. Both are fractions of full scale (0..1)");
  return result;
}

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
