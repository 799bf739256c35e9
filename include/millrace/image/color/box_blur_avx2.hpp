// The kernel of box_blur.hpp with AVX2: the same bytes, 32 sums at a time.
//
//   mr::detail::box_blur<mr::detail::avx2_boxes> blur;
//   if (mr::detail::cpu_has_avx2()) blur.run(pixels, weights);
//
// For radii up to 127, sums have 16 bits. For larger radii, the portable kernel runs. Errors, threads: see
// box_blur.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/color/box_blur.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <cstddef>
#include <cstdint>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct avx2_boxes {
  static void run(const box_pass& pass) noexcept {
    if (pass.weights.radius > 127) return portable_boxes::run(pass);
    constexpr std::size_t lanes = box_pass::lanes;
    const __m256i inside = _mm256_set1_epi32(static_cast<int>(pass.weights.inside));
    const __m256i end = _mm256_set1_epi32(static_cast<int>(pass.weights.end));
    const std::size_t reach = (pass.weights.radius + 1) * lanes;
    __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (const std::uint8_t* at = pass.from - reach; at != pass.from + reach - lanes; at += lanes)
      for (unsigned k = 0; k < 2; ++k) sum[k] = _mm256_add_epi16(sum[k], words(at + 16 * k));
    const std::uint8_t* at = pass.from;
    std::uint8_t* to = pass.to;
    __m256i last[2] = {words(at + reach - lanes), words(at + reach - lanes + 16)};
    for (std::size_t i = 0; i < pass.count; ++i, at += lanes, to += lanes) {
      __m256i results[2];
      for (unsigned k = 0; k < 2; ++k) {
        const __m256i before = words(at - reach + 16 * k), after = words(at + reach + 16 * k);
        sum[k] = _mm256_sub_epi16(_mm256_add_epi16(sum[k], last[k]), before);
        results[k] = weighted(sum[k], inside, _mm256_add_epi16(before, after), end);
        last[k] = after;
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                          _mm256_permute4x64_epi64(_mm256_packus_epi16(results[0], results[1]), 0xd8));
    }
  }

 private:
  static __m256i words(const std::uint8_t* from) noexcept {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }

  static __m256i weighted_8(__m256i sums, __m256i inside, __m256i ends, __m256i end) noexcept {
    const __m256i product = _mm256_add_epi32(_mm256_mullo_epi32(sums, inside), _mm256_mullo_epi32(ends, end));
    return _mm256_srli_epi32(_mm256_add_epi32(product, _mm256_set1_epi32(1 << 23)), 24);
  }
  static __m256i weighted(__m256i sums, __m256i inside, __m256i ends, __m256i end) noexcept {
    const __m256i zero = _mm256_setzero_si256();
    return _mm256_packus_epi32(
        weighted_8(_mm256_unpacklo_epi16(sums, zero), inside, _mm256_unpacklo_epi16(ends, zero), end),
        weighted_8(_mm256_unpackhi_epi16(sums, zero), inside, _mm256_unpackhi_epi16(ends, zero), end));
  }
};

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
