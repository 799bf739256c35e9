#include <millrace/base/random.hpp>
#include <millrace/simd/byte_tables.hpp>
#include <millrace/simd/cpu_features.hpp>
#include <millrace/simd/pixel_words.hpp>

#include "differing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>

#if defined __x86_64__ || defined __aarch64__

#define MILLRACE_KERNELS "unit/simd/byte_words_checks.inc"
#include <millrace/simd/for_each_layer.inc>

TEST_CASE("each operation on bytes equals a loop over elements") {
  if (!millrace::detail::cpu_has_word_layer()) return;
  millrace::rng d({.seed = 93});
  for (int i = 0; i < 300; ++i) {
    const auto [bytes, numbers, pixels, tables] = millrace::detail::word_layer::unequal_results(d);
    CHECK(bytes == 0);
    CHECK(numbers == 0);
    CHECK(pixels == 0);
    CHECK(tables == 0);
  }
}

#endif
