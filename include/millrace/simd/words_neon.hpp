// The word layer of NEON, which every aarch64 processor has: the operations of words_avx2.hpp on 128-bit registers.
//
//   using namespace mr::detail::neon;
//   bytes limited(words a, words b) { return clamped_bytes(a, b); }
//
// See words_avx2.hpp for the meaning of each function. Threads: any; all functions except stores are pure.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __aarch64__

#include <arm_neon.h>

#include <millrace/simd/neon_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail { namespace neon {

inline constexpr std::size_t blocks = 1;
#include <millrace/simd/words_common.inc>

MILLRACE_SIMD words low_pairs(words a, words b) noexcept { return vzip1q_s16(a, b); }
MILLRACE_SIMD words high_pairs(words a, words b) noexcept { return vzip2q_s16(a, b); }
MILLRACE_SIMD bytes low_pairs(bytes a, bytes b) noexcept { return vzip1q_u8(a, b); }
MILLRACE_SIMD bytes high_pairs(bytes a, bytes b) noexcept { return vzip2q_u8(a, b); }
MILLRACE_SIMD quads low_pairs(quads a, quads b) noexcept { return vzip1q_s32(a, b); }
MILLRACE_SIMD quads high_pairs(quads a, quads b) noexcept { return vzip2q_s32(a, b); }
MILLRACE_SIMD octs low_pairs(octs a, octs b) noexcept { return (octs)vzip1q_s64((int64x2_t)a, (int64x2_t)b); }
MILLRACE_SIMD octs high_pairs(octs a, octs b) noexcept { return (octs)vzip2q_s64((int64x2_t)a, (int64x2_t)b); }

MILLRACE_SIMD words rounded_products(words a, words b) noexcept { return vqrdmulhq_s16(a, b); }
MILLRACE_SIMD words high_products(words a, words b) noexcept {
  return vuzp2q_s16((int16x8_t)vmull_s16(vget_low_s16(a), vget_low_s16(b)), (int16x8_t)vmull_high_s16(a, b));
}
MILLRACE_SIMD words saturating_sums(words a, words b) noexcept { return vqaddq_s16(a, b); }
MILLRACE_SIMD words unsigned_saturating_sums(words a, words b) noexcept {
  return (words)vqaddq_u16((uint16x8_t)a, (uint16x8_t)b);
}
MILLRACE_SIMD words clamped_words(quads a, quads b) noexcept { return vqmovn_high_s32(vqmovn_s32(a), b); }
MILLRACE_SIMD bytes clamped_bytes(words a, words b) noexcept { return vqmovun_high_s16(vqmovun_s16(a), b); }
template <int bits>
MILLRACE_SIMD bytes rounded_signed_bytes(words a, words b) noexcept {
  return (bytes)vqrshrn_high_n_s16(vqrshrn_n_s16(a, bits), b, bits);
}
template <int bits>
MILLRACE_SIMD words low_sums(bytes a, bytes b) noexcept {
  return vshlq_n_s16(vaddl_s8(vget_low_s8((int8x16_t)a), vget_low_s8((int8x16_t)b)), bits);
}
template <int bits>
MILLRACE_SIMD words high_sums(bytes a, bytes b) noexcept {
  return vshlq_n_s16(vaddl_high_s8((int8x16_t)a, (int8x16_t)b), bits);
}
MILLRACE_SIMD words low_words(bytes v) noexcept { return (words)vmovl_u8(vget_low_u8(v)); }
MILLRACE_SIMD words high_words(bytes v) noexcept { return (words)vmovl_high_u8(v); }
MILLRACE_SIMD quads low_quads(words v) noexcept { return (quads)vmovl_u16(vget_low_u16((uint16x8_t)v)); }
MILLRACE_SIMD quads high_quads(words v) noexcept { return (quads)vmovl_high_u16((uint16x8_t)v); }
MILLRACE_SIMD bytes rounded_top_bytes(unsigned_quads a, unsigned_quads b, unsigned_quads c, unsigned_quads d) noexcept {
  const uint32x4_t half = vdupq_n_u32(1U << 23);
  const uint16x8_t first = vaddhn_high_u32(vaddhn_u32((uint32x4_t)a, half), (uint32x4_t)b, half);
  const uint16x8_t second = vaddhn_high_u32(vaddhn_u32((uint32x4_t)c, half), (uint32x4_t)d, half);
  return vuzp2q_u8((uint8x16_t)first, (uint8x16_t)second);
}
struct byte_weights {
  MILLRACE_SIMD byte_weights(int of_x, int of_y) noexcept
      : of_x_(static_cast<std::uint16_t>(of_x)), of_y_(static_cast<std::uint16_t>(of_y)) {}

  MILLRACE_SIMD void add_to(quads* sums, bytes x, bytes y) const noexcept {
    add_one(sums, x, of_x_);
    add_one(sums, y, of_y_);
  }

 private:
  MILLRACE_SIMD static void add_one(quads* sums, bytes v, std::uint16_t weight) noexcept {
    const auto low = (uint16x8_t)low_words(v), high = (uint16x8_t)high_words(v);
    sums[0] = (quads)vmlal_n_u16((uint32x4_t)sums[0], vget_low_u16(low), weight);
    sums[1] = (quads)vmlal_high_n_u16((uint32x4_t)sums[1], low, weight);
    sums[2] = (quads)vmlal_n_u16((uint32x4_t)sums[2], vget_low_u16(high), weight);
    sums[3] = (quads)vmlal_high_n_u16((uint32x4_t)sums[3], high, weight);
  }

  std::uint16_t of_x_, of_y_;
};
template <int of_x, int of_y, int of_z>
MILLRACE_SIMD void weighted_means(quads* sums, bytes x, bytes y, bytes z) noexcept {
  const uint16x8_t r[2] = {(uint16x8_t)low_words(x), (uint16x8_t)high_words(x)};
  const uint16x8_t g[2] = {(uint16x8_t)low_words(y), (uint16x8_t)high_words(y)};
  const uint16x8_t b[2] = {(uint16x8_t)low_words(z), (uint16x8_t)high_words(z)};
  for (std::size_t k = 0; k < 2; ++k) {
    uint32x4_t low = vmull_n_u16(vget_low_u16(r[k]), of_x), high = vmull_high_n_u16(r[k], of_x);
    low = vmlal_n_u16(vmlal_n_u16(low, vget_low_u16(g[k]), of_y), vget_low_u16(b[k]), of_z);
    high = vmlal_high_n_u16(vmlal_high_n_u16(high, g[k], of_y), b[k], of_z);
    sums[2 * k] = (quads)vrshrq_n_u32(low, 16);
    sums[2 * k + 1] = (quads)vrshrq_n_u32(high, 16);
  }
}
MILLRACE_SIMD bytes narrowed_bytes(const quads* q) noexcept {
  const uint16x8_t low = vuzp1q_u16((uint16x8_t)q[0], (uint16x8_t)q[1]);
  const uint16x8_t high = vuzp1q_u16((uint16x8_t)q[2], (uint16x8_t)q[3]);
  return vuzp1q_u8((uint8x16_t)low, (uint8x16_t)high);
}
MILLRACE_SIMD bytes narrowed_masks(const quads* q) noexcept { return narrowed_bytes(q); }
MILLRACE_SIMD quads add_products(quads sums, words a, words b) noexcept {
  const int16x8_t v = a, w = b;
  return vmlal_high_s16(vmlal_s16(sums, vget_low_s16(v), vget_low_s16(w)), v, w);
}
MILLRACE_SIMD quads totals(const quads (&v)[vector_quads]) noexcept {
  return vpaddq_s32(vpaddq_s32((int32x4_t)v[0], (int32x4_t)v[1]), vpaddq_s32((int32x4_t)v[2], (int32x4_t)v[3]));
}
MILLRACE_SIMD octs sums_of_eight(bytes v) noexcept { return (octs)vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(v))); }
MILLRACE_SIMD bytes selected(bytes a, bytes b, bytes mask) noexcept { return vbslq_u8(mask, b, a); }
MILLRACE_SIMD bytes load_table(const std::uint8_t* from) noexcept { return load_bytes(from); }
MILLRACE_SIMD bytes entries_of(bytes table, bytes indices) noexcept { return vqtbl1q_u8(table, indices); }
MILLRACE_SIMD quads low_quad_products(words a, words b) noexcept {
  return (quads)vmull_u16(vget_low_u16((uint16x8_t)a), vget_low_u16((uint16x8_t)b));
}
MILLRACE_SIMD quads high_quad_products(words a, words b) noexcept {
  return (quads)vmull_high_u16((uint16x8_t)a, (uint16x8_t)b);
}
MILLRACE_SIMD unsigned_words high_products(unsigned_words a, unsigned_words b) noexcept {
  return (unsigned_words)vuzp2q_u16((uint16x8_t)vmull_u16(vget_low_u16((uint16x8_t)a), vget_low_u16((uint16x8_t)b)),
                                    (uint16x8_t)vmull_high_u16((uint16x8_t)a, (uint16x8_t)b));
}

MILLRACE_SIMD floats to_floats(quads v) noexcept { return vcvtq_f32_s32(v); }
MILLRACE_SIMD quads truncated(floats v) noexcept { return vcvtq_s32_f32(v); }
MILLRACE_SIMD quads nearest(floats v) noexcept { return vcvtnq_s32_f32(v); }
MILLRACE_SIMD floats sum_of_product(floats a, floats b, floats c) noexcept {
  floats product = a * b;
  asm("" : "+w"(product));
  return product + c;
}
MILLRACE_SIMD bool any_of(words a, words b) noexcept { return vmaxvq_u32((uint32x4_t)(a & b)) != 0; }

MILLRACE_SIMD word_block widened(byte_block v) noexcept { return (word_block)vmovl_u8(vget_low_u8(v)); }
MILLRACE_SIMD byte_block low_bytes(word_block v) noexcept { return vuzp1q_u8((uint8x16_t)v, (uint8x16_t)v); }
MILLRACE_SIMD byte_block half_sums(byte_block a, byte_block b) noexcept { return vhaddq_u8(a, b); }
MILLRACE_SIMD byte_block bytes_at(byte_block v, byte_block places) noexcept { return vqtbl1q_u8(v, places); }

MILLRACE_SIMD quads byte_sums(bytes v) noexcept { return (quads)vpaddlq_u16(vpaddlq_u8(v)); }
MILLRACE_SIMD quads weighted_byte_sums(bytes v, bytes weights) noexcept {
  const uint16x8_t low = vmull_u8(vget_low_u8(v), vget_low_u8(weights));
  return (quads)vpadalq_u16(vpaddlq_u16(low), vmull_high_u8(v, weights));
}

/// The words of four columns, in one half of x and one half of y. Half 0 is the lower half of a register, and half 1 is
/// the upper half.
template <int half_of_x, int half_of_y>
struct word_pairs {
  words x, y;
};
MILLRACE_SIMD word_pairs<0, 0> low_columns(words x, words y) noexcept { return {x, y}; }
MILLRACE_SIMD word_pairs<1, 1> high_columns(words x, words y) noexcept { return {x, y}; }

/// Multiplies by factors that are lanes of registers.
template <int... factors>
struct pair_products {
  MILLRACE_SIMD pair_products() noexcept {
    for (std::size_t i = 0; i < registers; ++i) of_register_[i] = vld1q_s16(table + 8 * i);
  }
  template <int of_x, int of_y, int half_of_x, int half_of_y>
  MILLRACE_SIMD quads of(word_pairs<half_of_x, half_of_y> xy) const noexcept {
    const int32x4_t first = product<of_x, half_of_x>((int16x8_t)xy.x);
    if constexpr (of_y == 0) return first;
    else return sum<of_y, half_of_y>(first, (int16x8_t)xy.y);
  }
  template <int of_x, int of_y, int half_of_x, int half_of_y>
  MILLRACE_SIMD quads onto(quads start, word_pairs<half_of_x, half_of_y> xy) const noexcept {
    const int32x4_t first = sum<of_x, half_of_x>(start, (int16x8_t)xy.x);
    if constexpr (of_y == 0) return first;
    else return sum<of_y, half_of_y>(first, (int16x8_t)xy.y);
  }
  template <int bits>
  MILLRACE_SIMD static words narrowed(quads low, quads high) noexcept {
    if constexpr (bits <= 16) return vshrn_high_n_s32(vshrn_n_s32(low, bits), high, bits);
    else return vshrn_high_n_s32(vshrn_n_s32(low, 16), high, 16) >> (bits - 16);
  }

 private:
  static constexpr std::size_t registers = (sizeof...(factors) + 7) / 8;
  static constexpr std::int16_t table[8 * registers] = {factors...};

  static constexpr int lane_of(int factor) {
    int i = 0;
    while (table[i] != factor) ++i;   // a factor that is not in the list does not compile
    return i;
  }
  template <int factor, int half>
  MILLRACE_SIMD int32x4_t product(int16x8_t a) const noexcept {
    constexpr int lane = lane_of(factor);
    if constexpr (half == 0) return vmull_laneq_s16(vget_low_s16(a), of_register_[lane / 8], lane % 8);
    else return vmull_high_laneq_s16(a, of_register_[lane / 8], lane % 8);
  }
  template <int factor, int half>
  MILLRACE_SIMD int32x4_t sum(int32x4_t start, int16x8_t a) const noexcept {
    constexpr int lane = lane_of(factor);
    if constexpr (half == 0) return vmlal_laneq_s16(start, vget_low_s16(a), of_register_[lane / 8], lane % 8);
    else return vmlal_high_laneq_s16(start, a, of_register_[lane / 8], lane % 8);
  }

  int16x8_t of_register_[registers];
};

inline constexpr std::size_t row_order[8] = {0, 1, 2, 3, 4, 5, 6, 7};

struct column_pairs {
  word_pairs<0, 1> of_04, of_26, of_15, of_37;
};
MILLRACE_SIMD column_pairs transposed_pairs(words r0, words r1, words r2, words r3) noexcept {
  const auto even_a = (int32x4_t)vtrn1q_s16(r0, r1);   // columns 0, 2, 4, 6 of two rows
  const auto odd_a = (int32x4_t)vtrn2q_s16(r0, r1);
  const auto even_b = (int32x4_t)vtrn1q_s16(r2, r3);
  const auto odd_b = (int32x4_t)vtrn2q_s16(r2, r3);
  const auto columns = [](int32x4_t v) { return word_pairs<0, 1>{(words)v, (words)v}; };
  return {columns(vtrn1q_s32(even_a, even_b)), columns(vtrn2q_s32(even_a, even_b)), columns(vtrn1q_s32(odd_a, odd_b)),
          columns(vtrn2q_s32(odd_a, odd_b))};
}

MILLRACE_SIMD column_pairs transposed_two(words top, words bottom) noexcept {
  return transposed_pairs(top, bottom, top, bottom);
}

inline constexpr std::size_t second_pair = 0;
MILLRACE_SIMD words load_row(const std::int16_t* at, std::size_t) noexcept { return load_words(at); }
MILLRACE_SIMD void clear_row(std::int16_t* at) noexcept { store(at, words{}); }
MILLRACE_SIMD void store_halves(std::uint8_t* first, std::uint8_t* second, quads v) noexcept {
  vst1_u8(first, vget_low_u8((uint8x16_t)v));
  vst1_u8(second, vget_high_u8((uint8x16_t)v));
}
MILLRACE_SIMD void store_four_rows(std::uint8_t* to, std::size_t stride_bytes, words left, words right) noexcept {
  static constexpr std::uint8_t by_rows[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  const auto rows = (quads)vqtbl1q_u8((uint8x16_t)clamped_bytes(left, right), vld1q_u8(by_rows));
  for (std::size_t i = 0; i < 4; ++i) {
    const int four = rows[i];
    std::memcpy(to + i * stride_bytes, &four, 4);
  }
}
MILLRACE_SIMD void store_two_rows(std::uint8_t* to, std::size_t stride_bytes, words columns) noexcept {
  static constexpr std::uint8_t by_rows[8] = {0, 4, 1, 5};
  const uint16x4_t rows = (uint16x4_t)vqtbl1_u8((uint8x16_t)clamped_bytes(columns, columns), vld1_u8(by_rows));
  const std::uint16_t two[2] = {vget_lane_u16(rows, 0), vget_lane_u16(rows, 1)};
  std::memcpy(to, two, 2);
  std::memcpy(to + stride_bytes, two + 1, 2);
}

}}}}   // namespace millrace::detail::neon

#include <millrace/simd/neon_end.inc>

#endif
