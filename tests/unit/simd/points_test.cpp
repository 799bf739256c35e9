#include <millrace/base/random.hpp>
#include <millrace/image/color/unfused.hpp>
#include <millrace/simd/cpu_features.hpp>
#include <millrace/simd/points.hpp>
#include <millrace/simd/words.hpp>

#include "differing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#define MILLRACE_KERNELS "unit/simd/points_checks.inc"
#include <millrace/simd/for_each_layer.inc>

TEST_CASE("each operation on points equals a loop over elements") {
#if defined __x86_64__ || defined __aarch64__
  if (!millrace::detail::cpu_has_word_layer()) return;
  millrace::rng d({.seed = 93});
  for (int i = 0; i < 500; ++i) {
    const auto [doubles, quads, points, axes, neighbors, results] =
        millrace::detail::word_layer::differing_point_operations(d);
    CHECK(doubles == 0);
    CHECK(quads == 0);
    CHECK(points == 0);
    CHECK(axes == 0);
    CHECK(neighbors == 0);
    CHECK(results == 0);
  }
#endif
}
