// The two inner loops of the resize, once in plain C++ and once with SSE2 (which every x86-64 has); equal bits.
//
// A source row is RGBX u8. A blended row is i16 with 7 fraction bits, two neighbouring pixels interleaved channel by
// channel (r0 r1 g0 g1 b0 b1 x0 x1), so that one multiply-add of pairs takes two taps. Weights are pairs too: the first
// tap in the low half of a 32-bit word.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace millrace::inline MILLRACE_ABI {
namespace detail {

constexpr int blended_bits = 7;                             // fraction bits of a blended row
constexpr int row_shift = 14 - blended_bits;                // weights have 14
constexpr int column_shift = 14 + blended_bits;

constexpr std::uint32_t weight_pair(int even, int odd) noexcept {
  return static_cast<std::uint32_t>(even) | static_cast<std::uint32_t>(odd) << 16;
}

/// The rows that one call of blend_rows sums up. Rows come in pairs; a missing partner has weight 0.
struct row_blend {
  const std::uint8_t* const* rows = nullptr;   ///< 2 * pairs pointers
  const std::uint32_t* weights = nullptr;      ///< per pair
  std::size_t pairs = 0;
  std::size_t groups = 0;                      ///< of 4 pixels (16 bytes)
  std::int32_t* sums = nullptr;                ///< 16 per group; null where the sum begins and ends with this call
  bool resumes = false;                        ///< the sum goes on from `sums`
  bool finishes = true;                        ///< the sum is rounded into `blended`, else kept in `sums`
  std::int16_t* blended = nullptr;             ///< 16 per group
};

/// One output row from a blended row.
struct column_blend {
  const std::int16_t* blended = nullptr;
  const std::uint32_t* first_pairs = nullptr;   ///< per output: index of its first pair of pixels
  const std::uint32_t* weights = nullptr;       ///< per output: `pairs` pairs
  std::size_t pairs = 0;
  std::size_t outputs = 0;
  std::uint8_t* rgb = nullptr;                  ///< 3 * outputs bytes
};

struct portable_kernels {
  static void blend_rows(const row_blend& b) noexcept {
    for (std::size_t g = 0; g < b.groups; ++g) {
      std::int32_t sum[16] = {};
      if (b.resumes) std::memcpy(sum, b.sums + 16 * g, sizeof sum);
      for (std::size_t p = 0; p < b.pairs; ++p) {
        const std::uint8_t* even = b.rows[2 * p] + 16 * g;
        const std::uint8_t* odd = b.rows[2 * p + 1] + 16 * g;
        const auto low = static_cast<std::int32_t>(b.weights[p] & 0xffff);
        const auto high = static_cast<std::int32_t>(b.weights[p] >> 16);
        for (std::size_t i = 0; i < 16; ++i) sum[i] += low * even[i] + high * odd[i];
      }
      if (!b.finishes) {
        std::memcpy(b.sums + 16 * g, sum, sizeof sum);
        continue;
      }
      std::int16_t* out = b.blended + 16 * g;
      for (std::size_t i = 0; i < 16; ++i) {
        const std::size_t pixel = i / 4, channel = i % 4;
        out[pixel / 2 * 8 + channel * 2 + pixel % 2] =
            static_cast<std::int16_t>((sum[i] + (1 << (row_shift - 1))) >> row_shift);
      }
    }
  }

  static void blend_columns(const column_blend& b) noexcept {
    for (std::size_t o = 0; o < b.outputs; ++o) {
      const std::int16_t* pixels = b.blended + std::size_t{b.first_pairs[o]} * 8;
      for (std::size_t channel = 0; channel < 3; ++channel) {
        std::int32_t sum = 1 << (column_shift - 1);
        for (std::size_t p = 0; p < b.pairs; ++p) {
          const std::uint32_t w = b.weights[o * b.pairs + p];
          sum += static_cast<std::int32_t>(w & 0xffff) * pixels[p * 8 + channel * 2] +
                 static_cast<std::int32_t>(w >> 16) * pixels[p * 8 + channel * 2 + 1];
        }
        b.rgb[o * 3 + channel] = static_cast<std::uint8_t>(sum >> column_shift);
      }
    }
  }
};

#ifdef __SSE2__

struct sse2_kernels {
  static void blend_rows(const row_blend& b) noexcept {
    if (b.resumes || !b.finishes) return blend<0, true>(b);
    switch (b.pairs) {   // most pictures shrink a little: a constant count keeps the sums in registers
      case 1: return blend<1, false>(b);
      case 2: return blend<2, false>(b);
      case 3: return blend<3, false>(b);
      default: return blend<0, false>(b);
    }
  }

  static void blend_columns(const column_blend& b) noexcept {
    switch (b.pairs) {
      case 1: return columns<1>(b);
      case 2: return columns<2>(b);
      case 3: return columns<3>(b);
      default: return columns<0>(b);
    }
  }

 private:
  struct sums {
    __m128i pixel[4];
  };

  static __m128i load(const void* from) noexcept { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
  static void store(void* to, __m128i v) noexcept { _mm_storeu_si128(static_cast<__m128i*>(to), v); }

  __attribute__((always_inline)) static void add_pair(sums& s, const row_blend& b, std::size_t p,
                                                      std::size_t at) noexcept {
    const __m128i zero = _mm_setzero_si128();
    const __m128i weight = _mm_set1_epi32(static_cast<int>(b.weights[p]));
    const __m128i even = load(b.rows[2 * p] + at), odd = load(b.rows[2 * p + 1] + at);
    const __m128i low = _mm_unpacklo_epi8(even, odd), high = _mm_unpackhi_epi8(even, odd);
    s.pixel[0] = _mm_add_epi32(s.pixel[0], _mm_madd_epi16(_mm_unpacklo_epi8(low, zero), weight));
    s.pixel[1] = _mm_add_epi32(s.pixel[1], _mm_madd_epi16(_mm_unpackhi_epi8(low, zero), weight));
    s.pixel[2] = _mm_add_epi32(s.pixel[2], _mm_madd_epi16(_mm_unpacklo_epi8(high, zero), weight));
    s.pixel[3] = _mm_add_epi32(s.pixel[3], _mm_madd_epi16(_mm_unpackhi_epi8(high, zero), weight));
  }

  /// `Pairs` is the number of pairs, or 0 for b.pairs; `Partial` if the sum comes from or goes to memory.
  template <std::size_t Pairs, bool Partial>
  static void blend(const row_blend& b) noexcept {
    const __m128i half = _mm_set1_epi32(1 << (row_shift - 1));
    for (std::size_t g = 0; g < b.groups; ++g) {
      sums s = {{half, half, half, half}};
      if (Partial && b.resumes)
        for (std::size_t k = 0; k < 4; ++k) s.pixel[k] = load(b.sums + 16 * g + 4 * k);
      if constexpr (Pairs >= 1) add_pair(s, b, 0, 16 * g);
      if constexpr (Pairs >= 2) add_pair(s, b, 1, 16 * g);
      if constexpr (Pairs >= 3) add_pair(s, b, 2, 16 * g);
      if constexpr (Pairs == 0)
        for (std::size_t p = 0; p < b.pairs; ++p) add_pair(s, b, p, 16 * g);
      if (Partial && !b.finishes) {   // here the sums hold the rounding half already
        for (std::size_t k = 0; k < 4; ++k) store(b.sums + 16 * g + 4 * k, s.pixel[k]);
        continue;
      }
      for (std::size_t k = 0; k < 4; ++k) s.pixel[k] = _mm_srai_epi32(s.pixel[k], row_shift);
      store(b.blended + 16 * g, _mm_or_si128(s.pixel[0], _mm_slli_epi32(s.pixel[1], 16)));
      store(b.blended + 16 * g + 8, _mm_or_si128(s.pixel[2], _mm_slli_epi32(s.pixel[3], 16)));
    }
  }

  template <std::size_t Pairs>
  static void columns(const column_blend& b) noexcept {
    const std::size_t pairs = Pairs == 0 ? b.pairs : Pairs;
    const auto pixel = [&](std::size_t o) {
      const std::int16_t* pixels = b.blended + std::size_t{b.first_pairs[o]} * 8;
      const std::uint32_t* weights = b.weights + o * pairs;
      __m128i sum = _mm_set1_epi32(1 << (column_shift - 1));
      const auto add = [&](std::size_t p) {
        sum = _mm_add_epi32(sum, _mm_madd_epi16(load(pixels + 8 * p), _mm_set1_epi32(static_cast<int>(weights[p]))));
      };
      if constexpr (Pairs >= 1) add(0);
      if constexpr (Pairs >= 2) add(1);
      if constexpr (Pairs >= 3) add(2);
      if constexpr (Pairs == 0)
        for (std::size_t p = 0; p < pairs; ++p) add(p);
      const __m128i words = _mm_packs_epi32(_mm_srai_epi32(sum, column_shift), sum);
      return _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    };
    // Four bytes are stored; the fourth is overwritten by the next pixel, and the row's last pixel has none.
    std::size_t o = 0;
    for (; o + 1 < b.outputs; ++o) {
      const int rgbx = pixel(o);
      std::memcpy(b.rgb + 3 * o, &rgbx, 4);
    }
    const int rgbx = pixel(o);
    std::memcpy(b.rgb + 3 * o, &rgbx, 3);
  }
};

using native_kernels = sse2_kernels;
#else
using native_kernels = portable_kernels;
#endif

}  // namespace detail
}  // namespace millrace::inline MILLRACE_ABI
