#include <millrace/base/random.hpp>
#include <millrace/image/color/unfused.hpp>
#include <millrace/simd/cpu_features.hpp>
#include <millrace/simd/pixel_words.hpp>
#include <millrace/simd/words.hpp>

#include "differing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#define MILLRACE_KERNELS "unit/simd/words_checks.inc"
#include <millrace/simd/for_each_layer.inc>
#define MILLRACE_KERNELS "unit/simd/pixel_words_checks.inc"
#include <millrace/simd/for_each_layer.inc>

namespace {

/// Returns the results of this processor's layer.
std::array<int, 8> differing_operations(millrace::rng& d) {
#if defined __x86_64__ || defined __aarch64__
  if (millrace::detail::cpu_has_word_layer()) return millrace::detail::word_layer::differing_operations(d);
#endif
  static_cast<void>(d);
  return {};
}

std::array<int, 2> differing_pixel_operations(millrace::rng& d) {
#if defined __x86_64__ || defined __aarch64__
  if (millrace::detail::cpu_has_word_layer()) return millrace::detail::word_layer::differing_pixel_operations(d);
#endif
  static_cast<void>(d);
  return {};
}

}  // namespace

TEST_CASE("each operation of a word layer equals a loop over elements") {
  millrace::rng d({.seed = 91});
  for (int i = 0; i < 500; ++i) {
    const auto [arithmetic, bytes, quads, halves, blocks, floats, any_of, byte_sums] = differing_operations(d);
    CHECK(arithmetic == 0);
    CHECK(bytes == 0);
    CHECK(quads == 0);
    CHECK(halves == 0);
    CHECK(blocks == 0);
    CHECK(floats == 0);
    CHECK(any_of == 0);
    CHECK(byte_sums == 0);
  }
}

TEST_CASE("each operation on pixels equals a loop over elements") {
  millrace::rng d({.seed = 92});
  for (int i = 0; i < 500; ++i) {
    const auto [words, pixels] = differing_pixel_operations(d);
    CHECK(words == 0);
    CHECK(pixels == 0);
  }
}
