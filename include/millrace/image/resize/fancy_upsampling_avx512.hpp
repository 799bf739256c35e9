// An AVX-512 version of color_half() in fancy_upsampling.hpp, the most expensive kernel for subsampled chroma.
//
//   const mr::detail::color_row<std::int16_t> row{.luma = y, .blue = u, .red = v, .count = 224, .rgb = {r, g, b}};
//   if (mr::detail::cpu_has_wide_vectors()) done = mr::detail::avx512_upsampling::color_half(row);
//
// Produces the same bits as avx2::upsampling, 64 pixels at a time. Shapes, units, errors, threads: see
// fancy_upsampling.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/resize/fancy_upsampling.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <millrace/simd/avx512_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct avx512_upsampling {
  /// Converts the pixels of a row that fill complete registers, from the beginning. Returns the number of converted
  /// pixels.
  static std::size_t color_half(const color_row<std::int16_t>& row) noexcept {
    const __m512i even_bias = _mm512_set1_epi16(static_cast<short>(row.even_bias - 2'048));
    const __m512i odd_bias = _mm512_set1_epi16(static_cast<short>(row.odd_bias - 2'048));
    const __m512i low_bytes = _mm512_set1_epi16(255);
    const std::uint8_t* const lumas = row.luma;
    const std::int16_t *const blues = row.blue, *const reds = row.red;
    std::uint8_t *const r = row.rgb[0], *const g = row.rgb[1], *const b = row.rgb[2];
    const std::size_t vector_pixels = row.count / 64 * 64;
    for (std::size_t x = 0; x < vector_pixels; x += 64) {
      const __m512i luma = _mm512_loadu_si512(lumas + x);
      const halves blue = chroma(blues + x / 2, even_bias, odd_bias);
      const halves red = chroma(reds + x / 2, even_bias, odd_bias);
      const pixels even = colored(_mm512_and_si512(luma, low_bytes), blue.even, red.even);
      const pixels odd = colored(_mm512_srli_epi16(luma, 8), blue.odd, red.odd);
      _mm512_storeu_si512(r + x, interleaved(even.r, odd.r));
      _mm512_storeu_si512(g + x, interleaved(even.g, odd.g));
      _mm512_storeu_si512(b + x, interleaved(even.b, odd.b));
    }
    return vector_pixels;
  }

 private:
  struct halves {
    __m512i even, odd;
  };
  struct pixels {
    __m512i r, g, b;
  };

  static __m512i interleaved(__m512i even, __m512i odd) noexcept {
    const __m128i once = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    const __m512i zip = _mm512_maskz_broadcast_i32x4(0xffff, once);
    return _mm512_shuffle_epi8(_mm512_packus_epi16(even, odd), zip);
  }

  static halves chroma(const std::int16_t* sums, __m512i even_bias, __m512i odd_bias) noexcept {
    const __m512i once = _mm512_loadu_si512(sums), own = _mm512_add_epi16(_mm512_slli_epi16(once, 1), once);
    return {_mm512_srai_epi16(_mm512_add_epi16(_mm512_add_epi16(own, even_bias), _mm512_loadu_si512(sums - 1)), 4),
            _mm512_srai_epi16(_mm512_add_epi16(_mm512_add_epi16(own, odd_bias), _mm512_loadu_si512(sums + 1)), 4)};
  }

  static __m512i greens(__m512i pairs) noexcept {
    const __m512i green = _mm512_set1_epi32(color_factors::green_pair());
    const __m512i sums = _mm512_add_epi32(_mm512_madd_epi16(pairs, green), _mm512_set1_epi32(1 << 14));
    return _mm512_maskz_srai_epi32(0xffff, sums, 15);   // g++ 12 warns about the plain intrinsic
  }

  static pixels colored(__m512i y, __m512i u, __m512i v) noexcept {
    return {_mm512_add_epi16(_mm512_add_epi16(y, v), _mm512_mulhrs_epi16(v, _mm512_set1_epi16(color_factors::red))),
            _mm512_add_epi16(y, _mm512_packs_epi32(greens(_mm512_unpacklo_epi16(u, v)),
                                                   greens(_mm512_unpackhi_epi16(u, v)))),
            _mm512_add_epi16(_mm512_add_epi16(y, u), _mm512_mulhrs_epi16(u, _mm512_set1_epi16(color_factors::blue)))};
  }
};

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
