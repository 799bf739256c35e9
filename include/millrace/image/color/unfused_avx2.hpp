// Sums of products in AVX2 registers that round twice, as Pillow does.
//
//   const __m256d sum = mr::detail::sum_of_product(a, b, c);                     // a * b, rounded, + c, rounded
//   const __m256i bytes = mr::detail::blended_8(backgrounds, values, factor);    // see blended() in byte_table.hpp
//
// Compilers also fuse intrinsics if the target or the program's flags allow fused operations.
// Errors: none. Threads: pure functions; any thread.
#pragma once

#ifdef __x86_64__

#include <millrace/base/version.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline __m256 sum_of_product(__m256 a, __m256 b, __m256 c) noexcept {
  __m256 product = a * b;
  asm("" : "+x"(product));   // the compiler cannot optimize across this
  return product + c;
}
inline __m256d sum_of_product(__m256d a, __m256d b, __m256d c) noexcept {
  __m256d product = a * b;
  asm("" : "+x"(product));
  return product + c;
}

/// Returns background + factor (value - background) for eight numbers, truncated. |factor| is at most 2^20.
inline __m256i blended_8(__m256i background, __m256i value, __m256 factor) noexcept {
  const __m256 difference = _mm256_cvtepi32_ps(_mm256_sub_epi32(value, background));
  return _mm256_cvttps_epi32(sum_of_product(difference, factor, _mm256_cvtepi32_ps(background)));
}

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
