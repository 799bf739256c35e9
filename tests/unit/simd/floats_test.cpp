#include <millrace/base/half.hpp>
#include <millrace/base/random.hpp>
#include <millrace/simd/cpu_features.hpp>
#include <millrace/simd/floats.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#define MILLRACE_KERNELS "unit/simd/floats_checks.inc"
#include <millrace/simd/for_each_layer.inc>

namespace {

int differing_numbers(const float* from) {
#if defined __x86_64__ || defined __aarch64__
  if (millrace::detail::cpu_has_word_layer()) return millrace::detail::word_layer::differing_numbers(from);
#endif
  static_cast<void>(from);
  return 0;
}

int differing_pixels(const std::uint8_t* pixels) {
#if defined __x86_64__ || defined __aarch64__
  if (millrace::detail::cpu_has_word_layer()) return millrace::detail::word_layer::differing_pixels(pixels);
#endif
  static_cast<void>(pixels);
  return 0;
}

}  // namespace

TEST_CASE("vectors of numbers are rounded, stored and loaded like single numbers") {
  millrace::rng d({.seed = 17});
  for (int round = 0; round < 20'000; ++round) {
    float numbers[64];
    for (float& n : numbers) {
      const auto bits = static_cast<std::uint32_t>(d.bits());
      // Half of the numbers have the magnitudes of f16, and many are halfway between two numbers of f16 or bf16.
      const std::uint32_t exponent = round % 2 == 0 ? bits >> 23 & 255 : 100 + static_cast<std::uint32_t>(d.below(45));
      n = std::bit_cast<float>((bits & (d.chance(0.3) ? 0x807ff000 : 0x807fffff)) | exponent << 23);
      if (!std::isfinite(n)) n = 0;
    }
    REQUIRE(differing_numbers(numbers) == 0);
  }
}

TEST_CASE("channels of pixels become numbers") {
  millrace::rng d({.seed = 18});
  for (int round = 0; round < 500; ++round) {
    std::uint8_t pixels[64];
    for (auto& p : pixels) p = static_cast<std::uint8_t>(d.below(256));
    REQUIRE(differing_pixels(pixels) == 0);
  }
}
