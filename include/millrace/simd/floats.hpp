// Vectors of f32 for the word layers (words.hpp): conversions from bytes, and loads
// and stores as f32, f16 and bf16.
//
//   using namespace mr::detail::neon;
//   const floats scale = floats_of(2.0F), bias = floats_of(1.0F);
//   const floats a = fused(load_floats(pixels), scale, bias);
//   const floats b = fused(load_floats(pixels + vector_quads), scale, bias);
//   store_numbers<false>(numbers, a, b);                       // float*, f16* or bf16*
//
// A vector has vector_quads numbers. Conversions round as base/half.hpp does, so the bits are the same.
// Callers, threads: see words.hpp. Errors: none.
#pragma once

#include <millrace/simd/words.hpp>

namespace millrace { inline namespace MILLRACE_ABI {
struct f16;   // of base/half.hpp, which belongs to a higher layer
struct bf16;
}}   // namespace millrace

#if defined __x86_64__ || defined __aarch64__

#include <millrace/simd/layer_begin.inc>

#ifdef __x86_64__

/// Whether store_numbers<true>() bypasses the cache. If so, the address must be aligned to vector_bytes.
inline constexpr bool has_streaming = true;
/// Must be called after the last streaming store, before any other thread or device reads the memory.
MILLRACE_SIMD void finish_stores() noexcept { _mm_sfence(); }

/// Returns a * b + c, rounded once.
MILLRACE_SIMD floats fused(floats a, floats b, floats c) noexcept { return _mm256_fmadd_ps(a, b, c); }
/// Loads vector_quads numbers of type u8, f32, f16 or bf16 as floats.
MILLRACE_SIMD floats load_floats(const std::uint8_t* from) noexcept {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32((__m128i)load_8(from)));
}
MILLRACE_SIMD floats load_floats(const f16* from) noexcept { return _mm256_cvtph_ps((__m128i)load_16(from)); }
MILLRACE_SIMD floats load_floats(const bf16* from) noexcept {
  return (floats)_mm256_slli_epi32(_mm256_cvtepu16_epi32((__m128i)load_16(from)), 16);
}

template <bool streams>
MILLRACE_SIMD void store_vector(void* to, quads v) noexcept {
  if constexpr (streams) _mm256_stream_si256(static_cast<__m256i*>(to), (__m256i)v);
  else store(to, v);
}
/// Rounds each number to the nearest number of the element type, ties to even. Stores the numbers of `a`, then the
/// numbers of `b`.
template <bool streams>
MILLRACE_SIMD void store_numbers(f16* to, floats a, floats b) noexcept {
  const __m128i low = _mm256_cvtps_ph((__m256)a, _MM_FROUND_TO_NEAREST_INT);
  const __m128i high = _mm256_cvtps_ph((__m256)b, _MM_FROUND_TO_NEAREST_INT);
  if constexpr (streams) {
    store_vector<true>(to, (quads)_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
  } else {
    _mm_storeu_si128((__m128i*)to, low);
    _mm_storeu_si128((__m128i*)to + 1, high);
  }
}
MILLRACE_SIMD __m256i rounded_upper_halves(floats v) noexcept {
  const auto bits = (unsigned_quads)v;
  return (__m256i)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
template <bool streams>
MILLRACE_SIMD void store_numbers(bf16* to, floats a, floats b) noexcept {
  // _mm256_packus_epi32() packs within blocks of 128 bits. The permutation restores the order.
  const __m256i crossed = _mm256_packus_epi32(rounded_upper_halves(a), rounded_upper_halves(b));
  store_vector<streams>(to, (quads)_mm256_permute4x64_epi64(crossed, 0xd8));
}

/// Loads four pixels into each block of 128 bits. Reads at most four pixels beyond the loaded pixels.
template <std::size_t channels>
MILLRACE_SIMD bytes load_pixels(const std::uint8_t* from) noexcept {
  return load_blocks(from, from + 4 * channels);
}

#else

inline constexpr bool has_streaming = false;   // no NEON store bypasses the cache
MILLRACE_SIMD void finish_stores() noexcept {}

MILLRACE_SIMD floats fused(floats a, floats b, floats c) noexcept { return vfmaq_f32(c, a, b); }
MILLRACE_SIMD floats load_floats(const std::uint8_t* from) noexcept {
  return vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8((uint8x8_t)vdup_n_u32(load<std::uint32_t>(from))))));
}
MILLRACE_SIMD floats load_floats(const f16* from) noexcept {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const std::uint16_t*)from)));
}
MILLRACE_SIMD floats load_floats(const bf16* from) noexcept {
  return (floats)vshll_n_u16(vld1_u16((const std::uint16_t*)from), 16);
}

template <bool>
MILLRACE_SIMD void store_vector(void* to, quads v) noexcept {
  store(to, v);
}
template <bool>
MILLRACE_SIMD void store_numbers(f16* to, floats a, floats b) noexcept {
  store(static_cast<void*>(to), (words)vcvt_high_f16_f32(vcvt_f16_f32(a), b));
}
template <bool>
MILLRACE_SIMD void store_numbers(bf16* to, floats a, floats b) noexcept {
  const auto increment = [](uint32x4_t bits) MILLRACE_ALWAYS_INLINE {
    return vaddq_u32(vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1)), vdupq_n_u32(0x7fff));
  };
  const uint32x4_t low = (uint32x4_t)a, high = (uint32x4_t)b;
  store(static_cast<void*>(to), (words)vaddhn_high_u32(vaddhn_u32(low, increment(low)), high, increment(high)));
}

template <std::size_t>
MILLRACE_SIMD bytes load_pixels(const std::uint8_t* from) noexcept {
  return load_bytes(from);
}

#endif

MILLRACE_SIMD floats load_floats(const float* from) noexcept { return load<floats>(from); }
template <bool streams>
MILLRACE_SIMD void store_numbers(float* to, floats a, floats b) noexcept {
  store_vector<streams>(to, as_quads(a));
  store_vector<streams>(to + vector_quads, as_quads(b));
}

#include <millrace/simd/layer_end.inc>

#endif
