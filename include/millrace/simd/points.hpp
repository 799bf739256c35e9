// Vector operations that resample a transformed image, with equal names for AVX2 and NEON (words.hpp). The coordinates
// of points are doubles. The pixels around each point are floats.
//
//   const mr::detail::neon::four_doubles x = mr::detail::neon::four_of(0.5, 1.5, 2.5, 3.5);
//   mr::detail::neon::rounded_down(x + mr::detail::neon::four_of(0.25));
//
// A register of floats consists of `blocks` blocks of 16 bytes: one with NEON, two with AVX2. Each block contains the
// four channels of one point. Callers, threads: see words.hpp.
#pragma once

#include <millrace/simd/words.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined __x86_64__ || defined __aarch64__

#include <millrace/simd/layer_begin.inc>

using float_block [[gnu::vector_size(16)]] = float;

#ifdef __x86_64__

/// Four doubles, which have the operators +, - and *.
using four_doubles [[gnu::vector_size(32)]] = double;

MILLRACE_SIMD four_doubles four_of(double a, double b, double c, double d) noexcept { return four_doubles{a, b, c, d}; }
MILLRACE_SIMD four_doubles four_of(double value) noexcept { return _mm256_set1_pd(value); }
/// Converts the first four bytes to doubles.
MILLRACE_SIMD four_doubles four_of(byte_block v) noexcept { return _mm256_cvtepi32_pd(_mm_cvtepu8_epi32((__m128i)v)); }
MILLRACE_SIMD float_block to_floats(four_doubles v) noexcept { return _mm256_cvtpd_ps(v); }
MILLRACE_SIMD four_doubles rounded_down(four_doubles v) noexcept { return _mm256_floor_pd(v); }
/// Truncates to 32-bit integers. NaN and numbers below the range become the lowest integer. Numbers above the range
/// become the lowest integer with AVX2, and the highest with NEON.
MILLRACE_SIMD quad_block truncated(four_doubles v) noexcept { return (quad_block)_mm256_cvttpd_epi32(v); }
/// Returns a * b + c. The product is rounded, then the sum.
MILLRACE_SIMD four_doubles sum_of_point_products(four_doubles a, four_doubles b, four_doubles c) noexcept {
  four_doubles product = a * b;
  asm("" : "+x"(product));   // the compiler cannot fuse product and sum
  return product + c;
}

/// Returns whether any bit is set.
MILLRACE_SIMD bool any_of(quad_block v) noexcept { return _mm_testz_si128((__m128i)v, (__m128i)v) == 0; }
/// Returns the four numbers, clamped to 0..255, as the bytes of an integer. Callers do not use the fourth byte.
MILLRACE_SIMD std::int32_t clamped_pixel(quad_block v) noexcept {
  const __m128i words = _mm_packs_epi32((__m128i)v, (__m128i)v);
  return _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
}

/// Converts `vector_quads` bytes of the block to floats. The first of them is byte `first`, a multiple of
/// `vector_quads`.
template <int first>
MILLRACE_SIMD floats floats_at(byte_block v) noexcept {
  const auto all = (__m128i)v;
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(first == 0 ? all : _mm_unpackhi_epi64(all, all)));
}
MILLRACE_SIMD floats rounded_down(floats v) noexcept { return _mm256_floor_ps(v); }
/// Returns, for each block, the four numbers at the indices a, b, c and d of the block.
template <int a, int b, int c, int d>
MILLRACE_SIMD floats picked(floats v) noexcept {
  return _mm256_permute_ps(v, a | b << 2 | c << 4 | d << 6);
}
/// Returns a * w + c with one rounding. In each block, w is the element of `weights` with the index `lane`.
template <int lane>
MILLRACE_SIMD floats fused_by_lane(floats a, floats weights, floats c) noexcept {
  return fused(a, picked<lane, lane, lane, lane>(weights), c);
}
/// Concatenates each block of `low` with the same block of `high`. Returns four of these eight numbers, beginning at
/// index `first`.
template <int first>
MILLRACE_SIMD floats joined(floats low, floats high) noexcept {
  return _mm256_castsi256_ps(_mm256_alignr_epi8(_mm256_castps_si256(high), _mm256_castps_si256(low), 4 * first));
}
/// For each block, transposes the 4 x 4 matrix whose row i is this block of v[i].
MILLRACE_SIMD void transpose(floats (&v)[4]) noexcept {
  const column_pairs rows = transposed_pairs(as_words(v[0]), as_words(v[1]), as_words(v[2]), as_words(v[3]));
  v[0] = (floats)rows.of_04;
  v[1] = (floats)rows.of_15;
  v[2] = (floats)rows.of_26;
  v[3] = (floats)rows.of_37;
}

/// Returns a vector whose block b contains four copies of v[first + b].
template <int first>
MILLRACE_SIMD floats spread(float_block v) noexcept {
  const __m128 two = first == 0 ? _mm_unpacklo_ps(v, v) : _mm_unpackhi_ps(v, v);
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(_mm256_castps128_ps256(two)), 0x50));
}
/// Writes the x of four points, followed by their y, to `axes`. `axes` is one register with AVX2, and two with NEON.
MILLRACE_SIMD void join_axes(float_block x, float_block y, floats (&axes)[1]) noexcept {
  axes[0] = _mm256_insertf128_ps(_mm256_castps128_ps256(x), y, 1);
}
/// Returns four numbers for each point, for one axis: 0 (x) or 1 (y). Block b of the result is for point `first` + b.
/// The numbers of point i are in by_point[0][i] with AVX2 (both axes), and in by_point[axis][i] with NEON.
template <int axis, int first>
MILLRACE_SIMD floats of_axis(const floats (&by_point)[1][4]) noexcept {
  return _mm256_permute2f128_ps(by_point[0][first], by_point[0][first + 1], axis == 0 ? 0x20 : 0x31);
}

/// Returns four bytes of each point as floats, beginning at byte `first`: 0, 4 or 8.
template <int first>
MILLRACE_SIMD floats point_floats(const byte_block (&points)[2]) noexcept {
  const auto p = (__m128i)points[0], q = (__m128i)points[1];
  return first == 8 ? floats_at<0>((byte_block)_mm_unpackhi_epi32(p, q))
                    : floats_at<2 * first>((byte_block)_mm_unpacklo_epi32(p, q));
}

/// Returns sixteen numbers, truncated and clamped to 0..255. Moves data between blocks.
MILLRACE_SIMD byte_block truncated_bytes(const floats (&v)[2]) noexcept {
  const auto words = (__m256i)clamped_words(truncated(v[0]), truncated(v[1]));
  const __m256i in_order = _mm256_permute4x64_epi64(words, 0xd8);
  return (byte_block)_mm_packus_epi16(_mm256_castsi256_si128(in_order), _mm256_extracti128_si256(in_order, 1));
}
/// Returns the first three numbers of each of four points, truncated and clamped, in the first twelve bytes.
MILLRACE_SIMD byte_block truncated_pixels(const floats (&v)[2]) noexcept {
  const auto words = (__m256i)clamped_words(truncated(v[0]), truncated(v[1]));
  const __m128i all = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  const __m128i places = _mm_setr_epi8(0, 1, 2, 8, 9, 10, 4, 5, 6, 12, 13, 14, -1, -1, -1, -1);
  return (byte_block)_mm_shuffle_epi8(all, places);
}
/// Returns sixteen bits. A bit is set if the number with the same index is negative.
MILLRACE_SIMD unsigned marks_of(const quads (&v)[2]) noexcept {
  const auto bits = [](quads q) MILLRACE_ALWAYS_INLINE {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps((__m256i)q)));
  };
  return bits(v[0]) | bits(v[1]) << 8;
}

#else

struct four_doubles {
  float64x2_t xy, zw;
};
MILLRACE_SIMD four_doubles operator+(four_doubles a, four_doubles b) noexcept { return {a.xy + b.xy, a.zw + b.zw}; }
MILLRACE_SIMD four_doubles operator-(four_doubles a, four_doubles b) noexcept { return {a.xy - b.xy, a.zw - b.zw}; }
MILLRACE_SIMD four_doubles operator*(four_doubles a, four_doubles b) noexcept { return {a.xy * b.xy, a.zw * b.zw}; }

MILLRACE_SIMD four_doubles four_of(double a, double b, double c, double d) noexcept {
  return {float64x2_t{a, b}, float64x2_t{c, d}};
}
MILLRACE_SIMD four_doubles four_of(double value) noexcept { return {vdupq_n_f64(value), vdupq_n_f64(value)}; }
MILLRACE_SIMD four_doubles four_of(byte_block v) noexcept {
  const uint32x4_t wide = vmovl_u16(vget_low_u16(vmovl_u8(vget_low_u8(v))));
  return {vcvtq_f64_u64(vmovl_u32(vget_low_u32(wide))), vcvtq_f64_u64(vmovl_high_u32(wide))};
}
MILLRACE_SIMD float_block to_floats(four_doubles v) noexcept { return vcvt_high_f32_f64(vcvt_f32_f64(v.xy), v.zw); }
MILLRACE_SIMD four_doubles rounded_down(four_doubles v) noexcept { return {vrndmq_f64(v.xy), vrndmq_f64(v.zw)}; }
MILLRACE_SIMD quad_block truncated(four_doubles v) noexcept {
  const float64x2_t lowest = vdupq_n_f64(-0x1p62);   // vmaxnm returns this instead of NaN
  const int64x2_t xy = vcvtq_s64_f64(vmaxnmq_f64(v.xy, lowest)), zw = vcvtq_s64_f64(vmaxnmq_f64(v.zw, lowest));
  return vqmovn_high_s64(vqmovn_s64(xy), zw);
}
MILLRACE_SIMD four_doubles sum_of_point_products(four_doubles a, four_doubles b, four_doubles c) noexcept {
  four_doubles product = a * b;
  asm("" : "+w"(product.xy), "+w"(product.zw));
  return product + c;
}

MILLRACE_SIMD bool any_of(quad_block v) noexcept { return vmaxvq_u32((uint32x4_t)v) != 0; }
MILLRACE_SIMD std::int32_t clamped_pixel(quad_block v) noexcept {
  const int16x4_t words = vqmovn_s32(v);
  return vget_lane_s32((int32x2_t)vqmovun_s16(vcombine_s16(words, words)), 0);
}

/// Uses one look-up, which moves four bytes into the low bytes of quads.
template <int first>
MILLRACE_SIMD floats floats_at(byte_block v) noexcept {
  constexpr quad_block places = {first - 256, first - 255, first - 254, first - 253};   // the upper bytes become 0
  return vcvtq_f32_u32((uint32x4_t)vqtbl1q_u8(v, (uint8x16_t)places));
}
MILLRACE_SIMD floats rounded_down(floats v) noexcept { return vrndmq_f32(v); }
template <int a, int b, int c, int d>
MILLRACE_SIMD floats picked(floats v) noexcept {
  return __builtin_shufflevector(v, v, a, b, c, d);
}
template <int lane>
MILLRACE_SIMD floats fused_by_lane(floats a, floats weights, floats c) noexcept {
  return vfmaq_laneq_f32(c, a, weights, lane);
}
template <int first>
MILLRACE_SIMD floats joined(floats low, floats high) noexcept {
  return vextq_f32(low, high, first);
}
MILLRACE_SIMD void transpose(floats (&v)[4]) noexcept {
  const auto a = (float64x2_t)vtrn1q_f32((float32x4_t)v[0], (float32x4_t)v[1]);
  const auto b = (float64x2_t)vtrn2q_f32((float32x4_t)v[0], (float32x4_t)v[1]);
  const auto c = (float64x2_t)vtrn1q_f32((float32x4_t)v[2], (float32x4_t)v[3]);
  const auto d = (float64x2_t)vtrn2q_f32((float32x4_t)v[2], (float32x4_t)v[3]);
  v[0] = (floats)vzip1q_f64(a, c);
  v[1] = (floats)vzip1q_f64(b, d);
  v[2] = (floats)vzip2q_f64(a, c);
  v[3] = (floats)vzip2q_f64(b, d);
}

template <int first>
MILLRACE_SIMD floats spread(float_block v) noexcept {
  return vdupq_laneq_f32(v, first);
}
MILLRACE_SIMD void join_axes(float_block x, float_block y, floats (&axes)[2]) noexcept {
  axes[0] = x;
  axes[1] = y;
}
template <int axis, int first>
MILLRACE_SIMD floats of_axis(const floats (&by_point)[2][4]) noexcept {
  return by_point[axis][first];
}

template <int first>
MILLRACE_SIMD floats point_floats(const byte_block (&points)[1]) noexcept {
  return floats_at<first>(points[0]);
}

MILLRACE_SIMD byte_block truncated_bytes(const floats (&v)[4]) noexcept {
  return clamped_bytes(clamped_words(truncated(v[0]), truncated(v[1])),
                       clamped_words(truncated(v[2]), truncated(v[3])));
}
MILLRACE_SIMD byte_block truncated_pixels(const floats (&v)[4]) noexcept {
  return bytes_at(truncated_bytes(v), byte_block{0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 255, 255, 255, 255});
}
MILLRACE_SIMD unsigned marks_of(const quads (&v)[4]) noexcept {
  const auto signs = [](quads a, quads b) MILLRACE_ALWAYS_INLINE { return vuzp2q_s16((int16x8_t)a, (int16x8_t)b); };
  const uint8x16_t signs_of_bytes = vuzp2q_u8((uint8x16_t)signs(v[0], v[1]), (uint8x16_t)signs(v[2], v[3]));
  constexpr byte_block bits = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const auto marks = vandq_u8((uint8x16_t)vshrq_n_s8((int8x16_t)signs_of_bytes, 7), bits);
  const uint8x16_t pairs = vpaddq_u8(marks, marks), fours = vpaddq_u8(pairs, pairs);
  return vgetq_lane_u16((uint16x8_t)vpaddq_u8(fours, fours), 0);
}

#endif

#include <millrace/simd/layer_end.inc>

#endif
