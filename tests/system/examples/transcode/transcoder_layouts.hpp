// Kinds of JPEGs that the transcoder accepts, and their pixels decoded by libjpeg.
#pragma once

#include "../../../unit/image/jpeg_recipes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace slow {

struct layout {
  J_COLOR_SPACE stored;
  std::array<std::pair<int, int>, 4> sampling;
  bool own_decoder;   ///< accepts it after conversion to baseline
};

inline constexpr std::pair<int, int> one{1, 1};
inline const std::vector<layout> layouts{
    {JCS_YCbCr, {one, one, one, one}, true},
    {JCS_YCbCr, {{{2, 1}, one, one, one}}, true},
    {JCS_YCbCr, {{{1, 2}, one, one, one}}, true},
    {JCS_YCbCr, {{{2, 2}, one, one, one}}, true},
    {JCS_YCbCr, {{{4, 1}, one, one, one}}, false},
    {JCS_YCbCr, {{{2, 2}, {2, 1}, {1, 2}, one}}, false},
    {JCS_GRAYSCALE, {one, one, one, one}, true},
    {JCS_GRAYSCALE, {{{2, 2}, one, one, one}}, true},
    {JCS_RGB, {one, one, one, one}, false},
    {JCS_CMYK, {one, one, one, one}, false},
    {JCS_YCCK, {{{2, 2}, one, one, {2, 2}}}, false},
};

inline mr::image pixels(const layout& l, mr::rng& random) {
  return slow::photo(1 + random.below(70), 1 + random.below(70), slow::channels_of(l.stored), random.bits());
}

inline mr::image decode(std::span<const std::byte> file, const layout& l) {
  const std::size_t channels = slow::channels_of(l.stored);
  return slow::decode(file, channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK);
}

inline bool same_pixels(const mr::image& a, const mr::image& b) {
  return a.shape() == b.shape() && std::equal(a.span().begin(), a.span().end(), b.span().begin());
}

}  // namespace slow
