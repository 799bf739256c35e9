// Rounds vectors of f32 to bf16, to nearest even. For finite numbers, the results equal to_bf16() of base/half.hpp.
//
//   [[gnu::target("avx2,fma,f16c")]] __m256i rounded(__m256 numbers) { return mr::detail::upper_halves(numbers); }
//
// The function is inlined, and may be called only from functions with the same target. Errors: none. Threads: pure
// functions; any thread.
#pragma once

#include <millrace/simd/avx2_intrinsics.hpp>

#ifdef __x86_64__

#include <millrace/base/version.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Rounds eight f32 to nearest even, and returns their upper halves.
[[gnu::target("avx2,fma,f16c"), gnu::always_inline]] inline __m256i upper_halves(__m256 v) noexcept {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
}

}}}  // namespace millrace::detail

#endif
