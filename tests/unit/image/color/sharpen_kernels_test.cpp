#include <millrace/image/color/vector_kernels.hpp>
#include <millrace/simd/cpu_features.hpp>

#include "slow_colors.hpp"

#include <doctest/doctest.h>

namespace mr = millrace;

TEST_CASE("sharpness blends with the smoothed image") {
  std::vector<std::uint8_t> memory;
  for (const slow::picture& from : slow::pictures())
    for (const double f : slow::factors()) {
      CAPTURE(from.width);
      CAPTURE(from.height);
      CAPTURE(f);
      slow::picture expected = from, p = from;
      slow::sharpness(expected, f);
      mr::detail::sharpen<mr::detail::portable_sharpening>(
          {.data = p.data.data(), .width = p.width, .height = p.height}, static_cast<float>(f), memory);
      CHECK(p == expected);
#if defined __x86_64__ || defined __aarch64__
      if (!mr::detail::cpu_has_word_layer()) continue;
      p = from;
      mr::detail::sharpen<mr::detail::word_layer::sharpening>(
          {.data = p.data.data(), .width = p.width, .height = p.height}, static_cast<float>(f), memory);
      CHECK(p == expected);
#endif
    }
}
