// Computes the weights of a resize along one axis, for chroma of half the resolution. These weights perform the chroma
// upsampling and the resize in one step.
//
//   mr::detail::tap_table chroma;
//   mr::detail::compose_chroma(luma, 188, chroma);       // 188 chroma samples correspond to 375 luma samples
//
// Let L(x) be the weight of luma sample x. The weight of chroma sample k for the same output is then
//
//   (L(2k-1) + 3 L(2k) + 3 L(2k+1) + L(2k+2)) / 4.
// This is libjpeg's fancy upsampling, with the weights 3/4 and 1/4, followed by the resize, without the upsampling's
// rounding.
// At the image's edge libjpeg repeats the last sample, so weights beyond the edge are added to that sample's weight.
// The weights of an output sum to 2^14 exactly, because the running sum is rounded. Bicubic weights may be negative.
// Errors: none. Threads: any thread, if no two calls share `into`. Source of the rule: fancy_upsampling.hpp.
#pragma once

#include <millrace/image/resize/tap_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Writes the table. `extent` is the number of chroma samples of the full axis.
inline void compose_chroma(const tap_table& luma, std::size_t extent, tap_table& into) {
  into.clear(luma.overshoots());
  const std::size_t last = extent - 1;
  for (std::size_t o = 0; o < luma.outputs(); ++o) {
    const std::size_t begin = luma.first(o), end = luma.end(o);
    const std::size_t first = begin == 0 ? 0 : std::min((begin - 1) / 2, last);
    const std::size_t count = std::min(end / 2, last) - first + 1;
    const std::int16_t* const of_luma = luma.weights(o);
    const auto at = [&](std::size_t x) {   // 0 beyond both ends: x < begin wraps around to a huge number
      return x - begin < end - begin ? of_luma[x - begin] : 0;
    };
    std::int16_t* const weights = into.append(first, count);
    int running = 0, before = 0;
    for (std::size_t k = first; k < first + count; ++k) {
      running += at(2 * k - 1) + 3 * (at(2 * k) + at(2 * k + 1)) + at(2 * k + 2);
      if (k == 0) running += at(0);
      if (k == last) running += at(2 * last + 1);
      const int upto = (running + 2) >> 2;
      weights[k - first] = static_cast<std::int16_t>(upto - before);
      before = upto;
    }
  }
}

}}}  // namespace millrace::detail
