// Definitions for mix_pixels.hpp.
#pragma once

#include <millrace/device/mix_pixels.hpp>

#include <millrace/device/normalize.hpp>

#include <algorithm>
#include <cstring>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class T>
void mix_scalar(T* first, T* second, std::size_t count, const mix_weights& w) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const T a = first[i], b = second[i];
    first[i] = mixed_element(a, b, w);
    second[i] = mixed_element(b, a, w);
  }
}

#ifdef __x86_64__

/// Mixes 32 bytes or 8 numbers at a time. Each member mixes as many elements as it can, and returns their number.
struct avx2_mixer {
  static bool usable() noexcept {
    static const bool has = avx2_normalizer::usable();   // queried once, because cpuid may trap to a hypervisor
    return has;
  }

  /// Adds (d * weight + 2^15) >> 16 to a byte, for differences d. Half the weight has 15 fraction bits, as the
  /// instruction requires.
  [[gnu::target("avx2")]] static std::size_t mix(std::uint8_t* first, std::uint8_t* second, std::size_t count,
                                                 const mix_weights& w) noexcept {
    const __m256i weight = _mm256_set1_epi16(static_cast<short>(w.own / 2)), zero = _mm256_setzero_si256();
    std::size_t i = 0;
    for (; i + 32 <= count; i += 32) {
      auto* const to_first = reinterpret_cast<__m256i*>(first + i);
      auto* const to_second = reinterpret_cast<__m256i*>(second + i);
      const __m256i a = _mm256_loadu_si256(to_first), b = _mm256_loadu_si256(to_second);
      const __m256i a_low = _mm256_unpacklo_epi8(a, zero), a_high = _mm256_unpackhi_epi8(a, zero);
      const __m256i b_low = _mm256_unpacklo_epi8(b, zero), b_high = _mm256_unpackhi_epi8(b, zero);
      const __m256i low = _mm256_sub_epi16(a_low, b_low), high = _mm256_sub_epi16(a_high, b_high);
      const __m256i minus_low = _mm256_sub_epi16(zero, low), minus_high = _mm256_sub_epi16(zero, high);
      _mm256_storeu_si256(to_first,
                          _mm256_packus_epi16(_mm256_add_epi16(b_low, _mm256_mulhrs_epi16(low, weight)),
                                              _mm256_add_epi16(b_high, _mm256_mulhrs_epi16(high, weight))));
      _mm256_storeu_si256(to_second,
                          _mm256_packus_epi16(_mm256_add_epi16(a_low, _mm256_mulhrs_epi16(minus_low, weight)),
                                              _mm256_add_epi16(a_high, _mm256_mulhrs_epi16(minus_high, weight))));
    }
    return i;
  }

  template <class T>
  [[gnu::target("avx2,fma,f16c")]] static std::size_t mix(T* first, T* second, std::size_t count,
                                                          const mix_weights& w) noexcept {
    const __m256 own = _mm256_set1_ps(w.own_share), other = _mm256_set1_ps(w.other_share);
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
      const __m256 a = load(first + i), b = load(second + i);
      store(first + i, _mm256_fmadd_ps(own, a, other * b));
      store(second + i, _mm256_fmadd_ps(own, b, other * a));
    }
    return i;
  }

 private:
  [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] static inline __m256 load(const float* from) noexcept {
    return _mm256_loadu_ps(from);
  }
  [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] static inline __m256 load(const f16* from) noexcept {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] static inline __m256 load(const bf16* from) noexcept {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] static inline void store(float* to, __m256 v) noexcept {
    _mm256_storeu_ps(to, v);
  }
  [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] static inline void store(f16* to, __m256 v) noexcept {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
  /// Rounds the upper halves to nearest even, as to_bf16().
  [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] static inline void store(bf16* to, __m256 v) noexcept {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i halves = _mm256_srli_epi32(rounded, 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(halves, halves), 0xd8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(packed));
  }
};

#endif

template <class T>
void mix_run(T* first, T* second, std::size_t count, const mix_weights& w) noexcept {
  if (w.other == 0) return;
  std::size_t done = 0;
#ifdef __x86_64__
  if (avx2_mixer::usable()) done = avx2_mixer::mix(first, second, count, w);
#endif
  mix_scalar(first + done, second + done, count - done, w);
}

MILLRACE_INLINE void mix_elements(std::uint8_t* first, std::uint8_t* second, std::size_t count,
                                  const mix_weights& w) noexcept {
  mix_run(first, second, count, w);
}
MILLRACE_INLINE void mix_elements(float* first, float* second, std::size_t count, const mix_weights& w) noexcept {
  mix_run(first, second, count, w);
}
MILLRACE_INLINE void mix_elements(f16* first, f16* second, std::size_t count, const mix_weights& w) noexcept {
  mix_run(first, second, count, w);
}
MILLRACE_INLINE void mix_elements(bf16* first, bf16* second, std::size_t count, const mix_weights& w) noexcept {
  mix_run(first, second, count, w);
}

MILLRACE_INLINE void swap_bytes(std::byte* first, std::byte* second, std::size_t count) noexcept {
  std::byte block[512];   // a block of the first run
  for (std::size_t done = 0; done < count; done += sizeof block) {
    const std::size_t piece = std::min(sizeof block, count - done);
    std::memcpy(block, first + done, piece);
    std::memcpy(first + done, second + done, piece);
    std::memcpy(second + done, block, piece);
  }
}

}}}  // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
