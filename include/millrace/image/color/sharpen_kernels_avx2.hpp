// The kernel of sharpen_kernels.hpp with AVX2: the same bytes, 16 at a time.
//
//   if (mr::detail::cpu_has_avx2()) mr::detail::sharpen<mr::detail::avx2_sharpening>(pixels, 1.9F, memory);
//
// Shapes, units, errors, threads: see sharpen_kernels.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/color/sharpen_kernels.hpp>
#include <millrace/image/color/unfused_avx2.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <cstddef>
#include <cstdint>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct avx2_sharpening {
  static void run(const sharpened_row& r) noexcept {
    constexpr std::size_t at_once = 16;
    if (r.end < r.begin + at_once) return portable_sharpening::run(r);
    const __m256 factor = _mm256_set1_ps(r.factor);
    for (std::size_t i = r.begin; i < r.end; i += at_once)
      run_16(r, i + at_once <= r.end ? i : r.end - at_once, factor);   // the last 16 overlap the previous 16
  }

 private:
  static __m256i words(const std::uint8_t* from) noexcept {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static __m256i of_three(const std::uint8_t* at) noexcept {
    return _mm256_add_epi16(_mm256_add_epi16(words(at - 3), words(at + 3)), words(at));
  }

  static void run_16(const sharpened_row& r, std::size_t i, __m256 factor) noexcept {
    const __m256i own = words(r.here + i), zero = _mm256_setzero_si256();
    const __m256i sum = _mm256_add_epi16(
        _mm256_add_epi16(of_three(r.above + i), of_three(r.here + i)),
        _mm256_add_epi16(of_three(r.below + i), _mm256_slli_epi16(own, 2)));
    const __m256i odd = _mm256_add_epi16(_mm256_add_epi16(sum, sum), _mm256_set1_epi16(13));
    // 40330 / 2^20 exceeds 1 / 26 by less than 1 / (26 * 6643), and no dividend is above 6643.
    const __m256i smooth =
        _mm256_srli_epi16(_mm256_mulhi_epu16(odd, _mm256_set1_epi16(static_cast<short>(40'330))), 4);
    const __m256i words = _mm256_packs_epi32(
        blended_8(_mm256_unpacklo_epi16(smooth, zero), _mm256_unpacklo_epi16(own, zero), factor),
        blended_8(_mm256_unpackhi_epi16(smooth, zero), _mm256_unpackhi_epi16(own, zero), factor));
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(r.out + i), _mm256_castsi256_si128(bytes));
  }
};

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
