// The kernels of gaussian_blur.hpp with AVX2: the same bytes, 96 at a time.
//
//   mr::detail::gaussian_blur<mr::detail::avx2_gaussian> blur;
//   if (mr::detail::cpu_has_avx2()) blur.run(pixels, mr::detail::gaussian_weights_of(9, 1.2));
//
// One instruction adds two samples and scales the sum to 7 fraction bits. Another instruction multiplies by the weight
// and rounds.
// Errors, threads: see gaussian_blur.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/color/gaussian_blur.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <cstddef>
#include <cstdint>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct avx2_gaussian {
  static void center(const std::uint8_t* from, std::size_t count, std::int8_t* to) noexcept {
    std::size_t i = 0;
    for (; i + 32 <= count; i += 32) store(to + i, _mm256_xor_si256(load(from + i), _mm256_set1_epi8(-128)));
    portable_gaussian::center(from + i, count - i, to + i);
  }

  static void across(const gaussian_line& line, gaussian_block* out) noexcept {
    const __m256i zero = _mm256_setzero_si256(), scale = _mm256_set1_epi8(-128);   // read as an unsigned 128
    const auto scaled = [&](__m256i a, __m256i b, __m256i* to) {
      to[0] = _mm256_maddubs_epi16(scale, _mm256_unpacklo_epi8(a, b));
      to[1] = _mm256_maddubs_epi16(scale, _mm256_unpackhi_epi8(a, b));
    };
    for (std::size_t i = 0; i < line.blocks; ++i) {
      const std::int8_t* const at = line.samples + gaussian_block::size * i;
      sums totals;
      for (std::size_t k = 0; k < vectors / 2; ++k) scaled(load(at + 32 * k), zero, totals.v + 2 * k);
      sum_up(line.weights, totals, [&](std::ptrdiff_t d, sums& pairs) {
        const std::int8_t* const before = at - 3 * d, * const after = at + 3 * d;
        for (std::size_t k = 0; k < vectors / 2; ++k)
          scaled(load(before + 32 * k), load(after + 32 * k), pairs.v + 2 * k);
      });
      for (std::size_t k = 0; k < vectors; ++k) store(out[i].results.data() + 16 * k, totals.v[k]);
    }
  }

  static void down(const gaussian_line& line, std::uint8_t* out) noexcept {
    const __m256i half = _mm256_set1_epi16(64), black = _mm256_set1_epi8(-128);
    for (std::size_t i = 0; i < line.blocks; ++i) {
      const auto row = [&](std::ptrdiff_t d) { return line.rows[d][i].results.data(); };
      sums totals;
      for (std::size_t k = 0; k < vectors; ++k) totals.v[k] = load(row(0) + 16 * k);
      sum_up(line.weights, totals, [&](std::ptrdiff_t d, sums& pairs) {
        const std::int16_t* const above = row(-d), * const below = row(d);
        for (std::size_t k = 0; k < vectors; ++k)
          pairs.v[k] = _mm256_adds_epi16(load(above + 16 * k), load(below + 16 * k));
      });
      for (__m256i& sum : totals.v) sum = _mm256_srai_epi16(_mm256_add_epi16(sum, half), 7);
      for (std::size_t k = 0; k < vectors / 2; ++k)
        store(out + gaussian_block::size * i + 32 * k,
              _mm256_xor_si256(_mm256_packs_epi16(totals.v[2 * k], totals.v[2 * k + 1]), black));
    }
  }

 private:
  static constexpr std::size_t vectors = gaussian_block::size / 16;   // vectors of results per block

  /// The first vector of each pair contains bytes 0 to 7 and 16 to 23, so that packing restores the order.
  struct sums {
    __m256i v[vectors];
  };

  static __m256i load(const void* from) noexcept { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
  static void store(void* to, __m256i v) noexcept { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }

  /// Multiplies the center by its weight, and adds the other weighted samples. pairs_at(d, pairs) adds the two samples
  /// at distance d.
  template <class PairsAt>
  static void sum_up(const gaussian_weights& weights, sums& middle, const PairsAt& pairs_at) noexcept {
    for (__m256i& sum : middle.v) sum = _mm256_mulhrs_epi16(sum, _mm256_set1_epi16(weights[0]));
    for (std::size_t d = 1; d < weights.size(); ++d) {
      const __m256i weight = _mm256_set1_epi16(weights[d]);
      sums pairs;
      pairs_at(static_cast<std::ptrdiff_t>(d), pairs);
      for (std::size_t k = 0; k < vectors; ++k)
        middle.v[k] = _mm256_add_epi16(middle.v[k], _mm256_mulhrs_epi16(pairs.v[k], weight));
    }
  }
};

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
