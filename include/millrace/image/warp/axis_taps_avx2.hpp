// The kernel of axis_taps.hpp with AVX2: 16 bytes at a time.
//
//   if (mr::detail::cpu_has_avx2()) mr::detail::avx2_axis_taps::mix<false>(row, doubtful);
//
// Units, errors, threads: see axis_taps.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/warp/axis_taps.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct avx2_axis_taps {
  static void widen(const std::uint8_t* bytes, std::size_t count, float* to) noexcept {
    for (std::size_t i = 0; i < count; i += 8) {
      const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + i));
      _mm256_storeu_ps(to + i, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eight)));
    }
  }

  template <bool cubic>
  static std::size_t mix(const axis_tap_row& row, std::uint32_t* doubtful) noexcept {
    std::size_t count = 0;
    for (std::size_t i = 0; i < row.count; i += 16) {
      const eight_mixed a = mix_8<cubic>(row, i), b = mix_8<cubic>(row, i + 8);
      const __m128i bytes = truncated(a.value, b.value);
      const std::size_t left = row.count - i;
      if (left >= 16) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(row.to + i), bytes);
      } else {
        alignas(16) std::uint8_t last[16];
        _mm_store_si128(reinterpret_cast<__m128i*>(last), bytes);
        std::memcpy(row.to + i, last, left);
      }
      if (_mm256_testz_ps(_mm256_or_ps(a.close, b.close), _mm256_set1_ps(-0.0F)) != 0) continue;
      unsigned bits = doubtful_bits(a) | doubtful_bits(b) << 8;
      if (left < 16) bits &= (1U << left) - 1;
      for (; bits != 0; bits &= bits - 1)
        doubtful[count++] = static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(std::countr_zero(bits));
    }
    return count;
  }

 private:
  struct eight_mixed {
    __m256 value, close;   // close: ones where the value is close to an integer
    __m256 different;     // zeros where the neighbors are equal
  };

  template <bool cubic>
  static eight_mixed mix_8(const axis_tap_row& row, std::size_t i) noexcept {
    const std::size_t w = i & row.weight_mask;
    const __m256 own = _mm256_loadu_ps(row.own + i);
    const __m256 next = _mm256_loadu_ps(row.next + i) - own;
    __m256 value = _mm256_fmadd_ps(next, _mm256_loadu_ps(row.next_weights + w), own), different = next;
    if constexpr (cubic) {
      const __m256 before = _mm256_loadu_ps(row.before + i) - own;
      const __m256 last = _mm256_loadu_ps(row.last + i) - own;
      value = _mm256_fmadd_ps(before, _mm256_loadu_ps(row.before_weights + w), value);
      value = _mm256_fmadd_ps(last, _mm256_loadu_ps(row.last_weights + w), value);
      different = _mm256_or_ps(different, _mm256_or_ps(before, last));
    }
    const __m256 error = _mm256_set1_ps(row.error);
    const __m256 rest = value - _mm256_floor_ps(value + error);
    __m256 close = _mm256_cmp_ps(rest, error, _CMP_LE_OQ);
    if constexpr (!cubic) close = unless_equal(close, different);   // equal neighbors are frequent
    return {value, close, different};
  }

  static __m128i truncated(__m256 a, __m256 b) noexcept {
    const __m256i words = _mm256_packs_epi32(_mm256_cvttps_epi32(a), _mm256_cvttps_epi32(b));
    const __m256i in_order = _mm256_permute4x64_epi64(words, 0xd8);
    return _mm_packus_epi16(_mm256_castsi256_si128(in_order), _mm256_extracti128_si256(in_order, 1));
  }

  static __m256 unless_equal(__m256 close, __m256 different) noexcept {
    const __m256i equal = _mm256_cmpeq_epi32(_mm256_castps_si256(different), _mm256_setzero_si256());
    return _mm256_andnot_ps(_mm256_castsi256_ps(equal), close);
  }

  static unsigned doubtful_bits(const eight_mixed& m) noexcept {
    return static_cast<unsigned>(_mm256_movemask_ps(unless_equal(m.close, m.different)));
  }
};

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
