// The kernels of fancy_upsampling.hpp with AVX2: the same bits, 16 to 32 samples at a time.
//
//   if (mr::detail::cpu_has_avx2())
//     mr::detail::avx2_upsampling::color_full({.luma = y, .blue = u, .red = v, .count = 64, .rgb = {r, g, b}});
//
// 16-bit multiplies reproduce libjpeg's 16-bit fixed point:
// R = y + v + round(v * 13173 / 2^15), B = y + u + round(u * 25297 / 2^15). G needs one multiply-add of pairs with
// 15-bit factors. Tests show that the results are equal for all inputs; no proof is given here.
// Shapes, units, errors, threads: see fancy_upsampling.hpp. The code is compiled for AVX2 regardless of the program's
// flags.
#pragma once

#ifdef __x86_64__

#include <millrace/image/resize/fancy_upsampling.hpp>
#include <millrace/image/resize/fancy_upsampling_avx512.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>
#include <millrace/simd/cpu_features.hpp>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct avx2_upsampling {
  static void sum_rows(const std::uint8_t* nearer, const std::uint8_t* farther, std::size_t count,
                       std::int16_t* sums) noexcept {
    for (std::size_t i = 0; i < count; i += 16)
      store(sums + i, _mm256_add_epi16(thrice(words(nearer + i)), words(farther + i)));
  }

  static void sum_four_rows(const std::uint8_t* const (&rows)[4], std::size_t count, std::int16_t* const (&sums)[4])
      noexcept {
    const std::uint8_t *const row0 = rows[0], *const row1 = rows[1], *const row2 = rows[2], *const row3 = rows[3];
    std::int16_t *const sums0 = sums[0], *const sums1 = sums[1], *const sums2 = sums[2], *const sums3 = sums[3];
    for (std::size_t i = 0; i < count; i += 16) {
      const __m256i a = words(row0 + i), b = words(row1 + i), c = words(row2 + i), d = words(row3 + i);
      store(sums0 + i, _mm256_add_epi16(thrice(b), a));
      store(sums1 + i, _mm256_add_epi16(thrice(b), c));
      store(sums2 + i, _mm256_add_epi16(thrice(c), b));
      store(sums3 + i, _mm256_add_epi16(thrice(c), d));
    }
  }

  static void blend_rows(const std::int16_t* sums, std::size_t count, int bias, std::uint8_t* out) noexcept {
    const __m256i rounding = _mm256_set1_epi16(static_cast<short>(bias));
    for (std::size_t i = 0; i < count; i += 32)
      store(out + i, in_order(_mm256_srai_epi16(_mm256_add_epi16(load(sums + i), rounding), 2),
                              _mm256_srai_epi16(_mm256_add_epi16(load(sums + i + 16), rounding), 2)));
  }

  static void color_half(const color_row<std::int16_t>& row) noexcept {
    // Even and odd pixels are computed separately, because their chroma is separate.
    // The bias also subtracts 128 (2048 / 16).
    const __m256i even_bias = _mm256_set1_epi16(static_cast<short>(row.even_bias - 2'048));
    const __m256i odd_bias = _mm256_set1_epi16(static_cast<short>(row.odd_bias - 2'048));
    const __m256i low_bytes = _mm256_set1_epi16(255);
    // Local copies, because the compiler must assume that a stored byte may alias one of the pointers.
    const std::uint8_t* const lumas = row.luma;
    const std::int16_t *const blues = row.blue, *const reds = row.red;
    std::uint8_t *const r = row.rgb[0], *const g = row.rgb[1], *const b = row.rgb[2];
    std::size_t x = row.wide_vectors ? avx512_upsampling::color_half(row) : 0;
    for (const std::size_t count = row.count; x < count; x += 32) {
      const __m256i luma = load(lumas + x);
      const halves blue = chroma(blues + x / 2, even_bias, odd_bias);
      const halves red = chroma(reds + x / 2, even_bias, odd_bias);
      const pixels even = colored(_mm256_and_si256(luma, low_bytes), blue.even, red.even);
      const pixels odd = colored(_mm256_srli_epi16(luma, 8), blue.odd, red.odd);
      store(r + x, interleaved(even.r, odd.r));
      store(g + x, interleaved(even.g, odd.g));
      store(b + x, interleaved(even.b, odd.b));
    }
  }

  static void color_full(const color_row<std::uint8_t>& row) noexcept {
    const __m256i middle = _mm256_set1_epi16(128);
    const auto converted = [&](std::size_t x) {
      return colored(words(row.luma + x), _mm256_sub_epi16(words(row.blue + x), middle),
                     _mm256_sub_epi16(words(row.red + x), middle));
    };
    for (std::size_t x = 0; x < row.count; x += 32) {
      const pixels low = converted(x), high = converted(x + 16);
      store(row.rgb[0] + x, in_order(low.r, high.r));
      store(row.rgb[1] + x, in_order(low.g, high.g));
      store(row.rgb[2] + x, in_order(low.b, high.b));
    }
  }

 private:
  struct halves {
    __m256i even, odd;
  };
  struct pixels {
    __m256i r, g, b;
  };

  static __m256i load(const void* from) noexcept { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
  static void store(void* to, __m256i v) noexcept { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }
  static __m256i words(const std::uint8_t* from) noexcept {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }

  static __m256i thrice(__m256i v) noexcept { return _mm256_add_epi16(_mm256_slli_epi16(v, 1), v); }

  /// Returns the bytes of two vectors of 16 words in order. Packing alone works within lanes of 128 bits.
  static __m256i in_order(__m256i low, __m256i high) noexcept {
    return _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0xd8);
  }

  static __m256i interleaved(__m256i even, __m256i odd) noexcept {
    const __m256i zip = _mm256_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15,
                                         0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    return _mm256_shuffle_epi8(_mm256_packus_epi16(even, odd), zip);
  }

  static halves chroma(const std::int16_t* sums, __m256i even_bias, __m256i odd_bias) noexcept {
    const __m256i own = thrice(load(sums));
    return {_mm256_srai_epi16(_mm256_add_epi16(_mm256_add_epi16(own, even_bias), load(sums - 1)), 4),
            _mm256_srai_epi16(_mm256_add_epi16(_mm256_add_epi16(own, odd_bias), load(sums + 1)), 4)};
  }

  static pixels colored(__m256i y, __m256i u, __m256i v) noexcept {
    const __m256i green = _mm256_set1_epi32(color_factors::green_pair());
    const __m256i half = _mm256_set1_epi32(1 << 14);
    const auto greens = [&](__m256i pairs) {
      return _mm256_srai_epi32(_mm256_add_epi32(_mm256_madd_epi16(pairs, green), half), 15);
    };
    return {_mm256_add_epi16(_mm256_add_epi16(y, v), _mm256_mulhrs_epi16(v, _mm256_set1_epi16(color_factors::red))),
            _mm256_add_epi16(y, _mm256_packs_epi32(greens(_mm256_unpacklo_epi16(u, v)),
                                                   greens(_mm256_unpackhi_epi16(u, v)))),
            _mm256_add_epi16(_mm256_add_epi16(y, u), _mm256_mulhrs_epi16(u, _mm256_set1_epi16(color_factors::blue)))};
  }
};

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
