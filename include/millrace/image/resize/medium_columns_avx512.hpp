// A horizontal resize with up to 10 taps (weighted samples) per output, with AVX-512: 32 outputs at a time, in two
// halves of 16.
//
//   mr::detail::avx512_medium_columns medium;
//   if (mr::detail::cpu_has_wide_vectors() && medium.build({.taps = taps, .origin = 100}, 224))
//     medium.run({.rows = {a, b, c, d}, .out = sums, .stride = 672}, clamps);
//
// This kernel requires that weights fit into 16 bits and that the samples of each half are within 64 bytes. Outputs are
// in the order of avx2_columns.
// Shapes, units, errors, threads: see column_kernels.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/base/aligned_allocator.hpp>
#include <millrace/image/resize/column_kernels.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <algorithm>
#include <cstring>

#include <millrace/simd/avx512_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class avx512_medium_columns {
 public:
  static constexpr std::size_t max_pairs = 5;

  /// Builds the tables of `padded` outputs, a multiple of columns_at_once. Returns false if the requirements above are
  /// not met.
  bool build(const column_plan& plan, std::size_t padded) {
    const std::size_t outputs = plan.taps.outputs();
    pairs_ = (plan.taps.max_count() + 1) / 2;
    groups_.resize(padded / columns_at_once);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      group& entry = groups_[g];
      std::memset(&entry, 0, sizeof entry);
      for (std::size_t half = 0; half < 2; ++half) {
        const std::size_t begin = g * columns_at_once + half * outputs_at_once;
        const std::size_t base = std::min(plan.first_of(begin), plan.first_of(begin + outputs_at_once - 1));
        entry.base[half] = static_cast<std::int32_t>(base);
        for (std::size_t j = 0; j < outputs_at_once; ++j) {
          const std::size_t offset = plan.first_of(begin + j) - base;
          if (offset + 2 * pairs_ > window_bytes) return false;
          entry.pick[half][4 * j] = static_cast<std::uint8_t>(offset);
          entry.pick[half][4 * j + 2] = static_cast<std::uint8_t>(offset + 1);
          if (begin + j >= outputs) continue;
          for_column_weights(plan.taps, plan.source_of(begin + j), [&](std::size_t k, int weight) {
            entry.weights[k / 2][half][2 * j + k % 2] = static_cast<std::int16_t>(weight);
          });
        }
      }
    }
    return true;
  }

  void run(const column_rows& r, bool clamps) const noexcept {
    const std::size_t pairs = pairs_, stride = r.stride;
    const __m512i least = _mm512_set1_epi32(r.offset), largest = _mm512_set1_epi32(r.offset + largest_column_sum);
    const __m512i order = _mm512_load_si512(crossed);
    std::int16_t* out = r.out;
    for (const group& g : groups_) {
      four low, high;
      add_half<0>(g, r, pairs, low);
      add_half<1>(g, r, pairs, high);
      for (std::size_t k = 0; k < 4; ++k) {
        if (clamps) {
          low.sums[k] = _mm512_maskz_min_epi32(0xffff, _mm512_maskz_max_epi32(0xffff, low.sums[k], least), largest);
          high.sums[k] = _mm512_maskz_min_epi32(0xffff, _mm512_maskz_max_epi32(0xffff, high.sums[k], least), largest);
        }
        _mm512_storeu_si512(out + k * stride, _mm512_permutex2var_epi16(low.sums[k], order, high.sums[k]));
      }
      out += columns_at_once;
    }
  }

 private:
  static constexpr std::size_t outputs_at_once = 16, window_bytes = 64;

  struct alignas(64) group {
    std::uint8_t pick[2][64];   ///< even bytes: first sample of an output, from base; odd bytes are unused
    std::int16_t weights[max_pairs][2][32];
    std::int32_t base[2];
  };

  /// Sums of 16 outputs in each of four rows.
  struct four {
    __m512i sums[4];
  };

  template <std::size_t Half>
  MILLRACE_ALWAYS_INLINE static inline void add_half(const group& g, const column_rows& r, std::size_t pairs,
                                                     four& result) noexcept {
    constexpr __mmask64 even_bytes = 0x5555'5555'5555'5555;
    const __m512i two_samples_later = _mm512_set1_epi16(2), half = _mm512_set1_epi32(32 + (r.offset << 6));
    const std::ptrdiff_t base = g.base[Half];
    const __m512i a = _mm512_loadu_si512(r.rows[0] + base), b = _mm512_loadu_si512(r.rows[1] + base);
    const __m512i c = _mm512_loadu_si512(r.rows[2] + base), d = _mm512_loadu_si512(r.rows[3] + base);
    __m512i pick = _mm512_load_si512(g.pick[Half]), sum_a = half, sum_b = half, sum_c = half, sum_d = half;
    for (std::size_t p = 0; p < pairs; ++p) {
      const __m512i weights = _mm512_load_si512(g.weights[p][Half]);
      sum_a = _mm512_dpwssd_epi32(sum_a, _mm512_maskz_permutexvar_epi8(even_bytes, pick, a), weights);
      sum_b = _mm512_dpwssd_epi32(sum_b, _mm512_maskz_permutexvar_epi8(even_bytes, pick, b), weights);
      sum_c = _mm512_dpwssd_epi32(sum_c, _mm512_maskz_permutexvar_epi8(even_bytes, pick, c), weights);
      sum_d = _mm512_dpwssd_epi32(sum_d, _mm512_maskz_permutexvar_epi8(even_bytes, pick, d), weights);
      pick = _mm512_add_epi16(pick, two_samples_later);
    }
    // The mask of ones changes nothing, but g++ 12 warns about the plain intrinsics.
    result = {{_mm512_maskz_srai_epi32(0xffff, sum_a, 6), _mm512_maskz_srai_epi32(0xffff, sum_b, 6),
               _mm512_maskz_srai_epi32(0xffff, sum_c, 6), _mm512_maskz_srai_epi32(0xffff, sum_d, 6)}};
  }

  /// The permutation that joins two registers of 16 sums in the order of avx2_columns.
  alignas(64) static constexpr std::uint16_t crossed[32] = {0,  2,  4,  6,  8,  10, 12, 14, 32, 34, 36,
                                                            38, 40, 42, 44, 46, 16, 18, 20, 22, 24, 26,
                                                            28, 30, 48, 50, 52, 54, 56, 58, 60, 62};

  std::size_t pairs_ = 1;
  aligned_vector<group> groups_;
};

}}}   // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
