// The kernels of gaussian_blur.hpp with AVX2: the same bytes, 16 at a time.
//
//   mr::detail::gaussian_blur<mr::detail::avx2_gaussian> blur;
//   if (mr::detail::cpu_has_avx2()) blur.run(pixels, mr::detail::gaussian_weights_of(9, 1.2));
//
// The two samples at one distance are added first. Two distances then take one multiply-add of pairs.
// Errors, threads: gaussian_blur.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/color/gaussian_blur.hpp>
#include <millrace/image/simd/avx2_intrinsics.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <millrace/image/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct avx2_gaussian {
  static void down(const gaussian_line& line, std::int16_t* out) noexcept {
    const std::uint8_t* const* const rows = line.rows;
    for (std::size_t i = 0; i < line.count; i += 16) {
      const auto pair_at = [&](std::ptrdiff_t d) { return _mm256_add_epi16(words(rows[-d] + i), words(rows[d] + i)); };
      store(out + i, summed<1 << 8, 9>(line.weights, words(rows[0] + i), pair_at));
    }
  }

  static void across(const gaussian_line& line, std::uint8_t* out) noexcept {
    for (std::size_t i = 0; i < line.count; i += 16) {
      const std::int16_t* const at = line.sums + i;
      const auto pair_at = [&](std::ptrdiff_t d) { return _mm256_add_epi16(load(at - 3 * d), load(at + 3 * d)); };
      const __m256i made = summed<1 << 20, 21>(line.weights, load(at), pair_at);
      const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(made, made), 0x08);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_castsi256_si128(bytes));
    }
  }

 private:
  static __m256i words(const std::uint8_t* from) noexcept {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static __m256i load(const std::int16_t* from) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static void store(std::int16_t* to, __m256i v) noexcept { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }

  /// Returns 16 weighted sums, rounded. pair_at(d) is the sum of the two samples at distance d.
  template <int half, int shift, class PairAt>
  static __m256i summed(const gaussian_weights& weights, __m256i middle, const PairAt& pair_at) noexcept {
    __m256i low = _mm256_set1_epi32(half), high = low;
    const auto add = [&](std::size_t d, __m256i first, __m256i second) {
      std::int32_t two;
      std::memcpy(&two, weights.data() + d, 4);
      const __m256i w = _mm256_set1_epi32(two);
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(first, second), w));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(first, second), w));
    };
    add(0, middle, pair_at(1));
    for (std::size_t d = 2; d < weights.size(); d += 2)
      add(d, pair_at(static_cast<std::ptrdiff_t>(d)), pair_at(static_cast<std::ptrdiff_t>(d + 1)));
    return _mm256_packs_epi32(_mm256_srai_epi32(low, shift), _mm256_srai_epi32(high, shift));
  }
};

}}}  // namespace millrace::detail

#include <millrace/image/simd/avx2_end.inc>

#endif
