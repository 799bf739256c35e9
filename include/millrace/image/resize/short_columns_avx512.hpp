// Tables for 32 outputs of a horizontal resize, and their kernel for registers of 512 bits. Each output has up to 4
// taps (weighted samples).
//
//   if (mr::detail::cpu_has_wide_vectors() && group.widen())       // column_kernels_avx2.hpp builds the group
//     mr::detail::avx512_short_columns::run({&group, 1}, rows, 2);
//
// A lane (128 bits of a register) contains 8 outputs. `pick` selects their samples from the 16 bytes that begin at
// base[lane]. `wide_pick` selects the same samples from one window of 64 bytes. The lanes have the order of outputs of
// avx2_columns.
// Shapes, units, errors, threads: see column_kernels.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/resize/column_kernels.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <algorithm>
#include <span>

#include <millrace/simd/avx512_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct alignas(64) short_column_group {
  static constexpr std::size_t lanes = 4, window_bytes = 64;

  std::uint8_t pick[64];        ///< first and second sample of each output, from base[lane]
  std::uint8_t wide_pick[64];   ///< the same samples, from wide_base
  std::int8_t high[2][64], low[2][64];
  std::int32_t base[lanes], wide_base;

  /// Computes the members for one window of 64 bytes. Returns whether one window contains the samples of all outputs.
  bool widen() noexcept {
    wide_base = *std::min_element(base, base + lanes);
    int last = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      const int at = pick[i] + base[i / 16] - wide_base;
      last = std::max(last, at);
      wide_pick[i] = static_cast<std::uint8_t>(at);
    }
    return last + 2 < static_cast<int>(window_bytes);   // the second pair of taps is two bytes later
  }
};

struct avx512_short_columns {
  /// Computes the sums of the groups. `pairs` is the number of tap pairs.
  static void run(std::span<const short_column_group> groups, const column_rows& r, std::size_t pairs) noexcept {
    if (pairs == 1) r.offset == 0 ? run<1, false>(groups, r) : run<1, true>(groups, r);
    else r.offset == 0 ? run<2, false>(groups, r) : run<2, true>(groups, r);
  }

 private:
  template <int Pairs, bool Centered>
  static void run(std::span<const short_column_group> groups, const column_rows& r) noexcept {
    const std::uint8_t *const row0 = r.rows[0], *const row1 = r.rows[1], *const row2 = r.rows[2],
                              *const row3 = r.rows[3];
    std::int16_t* out = r.out;
    const std::size_t stride = r.stride;
    const __m512i rounds = _mm512_set1_epi16(512), offset = _mm512_set1_epi16(static_cast<short>(r.offset));
    for (const short_column_group& g : groups) {
      const __m512i pick = table(g.wide_pick);
      const tables t{.pick = pick,
                     .later = _mm512_add_epi8(pick, _mm512_set1_epi8(2)),
                     .high = {table(g.high[0]), table(g.high[1])},
                     .low = {table(g.low[0]), table(g.low[1])},
                     .rounds = rounds,
                     .offset = offset};
      const std::ptrdiff_t base = g.wide_base;
      put_sums<Pairs, Centered>(row0 + base, t, out);
      put_sums<Pairs, Centered>(row1 + base, t, out + stride);
      put_sums<Pairs, Centered>(row2 + base, t, out + 2 * stride);
      put_sums<Pairs, Centered>(row3 + base, t, out + 3 * stride);
      out += columns_at_once;
    }
  }

  struct tables {
    __m512i pick, later, high[2], low[2], rounds, offset;
  };

  static __m512i table(const void* from) noexcept { return _mm512_load_si512(from); }

  template <int Pairs, bool Centered>
  MILLRACE_ALWAYS_INLINE static inline void put_sums(const std::uint8_t* row, const tables& t,
                                                     std::int16_t* out) noexcept {
    const __m512i window = _mm512_loadu_si512(row);
    const __m512i first = _mm512_maskz_permutexvar_epi8(~__mmask64{0}, t.pick, window);
    __m512i high = _mm512_maddubs_epi16(first, t.high[0]), low = _mm512_maddubs_epi16(first, t.low[0]);
    if constexpr (Pairs == 2) {
      const __m512i second = _mm512_maskz_permutexvar_epi8(~__mmask64{0}, t.later, window);
      high = _mm512_add_epi16(high, _mm512_maddubs_epi16(second, t.high[1]));
      low = _mm512_add_epi16(low, _mm512_maddubs_epi16(second, t.low[1]));
    }
    if constexpr (Centered) high = _mm512_add_epi16(high, t.offset);
    _mm512_storeu_si512(out, _mm512_add_epi16(high, _mm512_mulhrs_epi16(low, t.rounds)));
  }
};

}}}   // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
