#include <millrace/image/color/vector_kernels.hpp>
#include <millrace/simd/cpu_features.hpp>

#include "../../../thorough.hpp"
#include "slow_colors.hpp"

#include <doctest/doctest.h>

namespace {

namespace mr = millrace;

/// All colors with this red, or all HSV with this hue.
slow::picture all_with(std::size_t first) {
  slow::picture p(256, 256);
  for (std::size_t i = 0; i < p.count(); ++i) {
    p.data[3 * i] = static_cast<std::uint8_t>(first);
    p.data[3 * i + 1] = static_cast<std::uint8_t>(i / 256);
    p.data[3 * i + 2] = static_cast<std::uint8_t>(i % 256);
  }
  return p;
}

template <class Slowly>
slow::picture computed_slowly(const slow::picture& from, const Slowly& slowly) {
  slow::picture expected = from;
  for (std::size_t i = 0; i < expected.count(); ++i) {
    const auto p = slowly(from.data[3 * i], from.data[3 * i + 1], from.data[3 * i + 2]);
    std::copy(p.begin(), p.end(), expected.data.begin() + static_cast<std::ptrdiff_t>(3 * i));
  }
  return expected;
}

}  // namespace

TEST_CASE("every color becomes Pillow's HSV, and every HSV becomes Pillow's color") {
  for (std::size_t first = 0; first < 256; first += stride(37)) {
    CAPTURE(first);
    const slow::picture from = all_with(first);
    const slow::picture hsv = computed_slowly(from, slow::hsv_of), rgb = computed_slowly(from, slow::rgb_of);
    slow::picture p = from;
    mr::detail::portable_hues::to_hsv(p.data.data(), p.count());
    CHECK(p == hsv);
    p = from;
    mr::detail::portable_hues::from_hsv(p.data.data(), p.count());
    CHECK(p == rgb);
#if defined __x86_64__ || defined __aarch64__
    if (!mr::detail::cpu_has_word_layer()) continue;
    p = from;
    mr::detail::word_layer::hues::to_hsv(p.data.data(), p.count());
    CHECK(p == hsv);
    p = from;
    mr::detail::word_layer::hues::from_hsv(p.data.data(), p.count());
    CHECK(p == rgb);
#endif
  }
}

TEST_CASE("hues are rotated by a fraction of the circle") {
  for (const slow::picture& from : slow::pictures())
    for (const double by : {-0.5, -0.3, -0.1, -0.003, 0.0, 0.003, 0.004, 0.05, 0.1, 0.25, 0.4999, 0.5}) {
      CAPTURE(by);
      slow::picture expected = from, p = from;
      slow::hue(expected, by);
      const int shift = static_cast<int>(by * 255) & 255;
      mr::detail::portable_hues::shift(p.data.data(), p.count(), shift);
      CHECK(p == expected);
#if defined __x86_64__ || defined __aarch64__
      if (!mr::detail::cpu_has_word_layer()) continue;
      p = from;
      mr::detail::word_layer::hues::shift(p.data.data(), p.count(), shift);
      CHECK(p == expected);
#endif
    }
}
