// Operations of the word layers (words.hpp) for the kernels of the resizer: conversions of words to bytes, and loads
// and stores of pixels. Callers, threads: see words.hpp.
//
//   const mr::detail::neon::rgb_writer<> writer;                       // avx2::rgb_writer<false, false>
//   writer.put(red, green, blue, to);                                  // 3 * vector_bytes interleaved bytes
//   const auto p = mr::detail::neon::load_rgbx(pixels);                // p.r, p.g, p.b
#pragma once

#include <millrace/simd/floats.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined __x86_64__ || defined __aarch64__

#include <millrace/simd/layer_begin.inc>

/// One channel of pixels, as rgb_writer accepts it. The channel is computed in `row_parts` registers of words.
using row_bytes = bytes;
inline constexpr std::size_t row_parts = 2;
/// The first three channels of vector_bytes pixels.
struct channel_bytes {
  bytes r, g, b;
};

#ifdef __x86_64__

/// Converts words to bytes, clamped to 0..255. Returns all bytes of `a`, then all bytes of `b`. Moves data between
/// blocks.
MILLRACE_SIMD bytes clamped_bytes_in_order(words a, words b) noexcept {
  return (bytes)_mm256_permute4x64_epi64((__m256i)clamped_bytes(a, b), 0xd8);
}
/// Loads vector_words bytes as words.
MILLRACE_SIMD words load_widened(const std::uint8_t* from) noexcept {
  return (words)_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i*)from));
}
/// Multiplies four vectors of words by four factors, and adds the products. The results of low() and high() are in the
/// order that rounded_words(low, high) expects.
class four_factors {
 public:
  MILLRACE_SIMD explicit four_factors(const std::int16_t* factors) noexcept
      : first_(pair_of(factors)), last_(pair_of(factors + 2)) {}
  MILLRACE_SIMD quads low(const words* v) const noexcept {
    return __builtin_ia32_pmaddwd256(low_pairs(v[0], v[1]), first_) +
           __builtin_ia32_pmaddwd256(low_pairs(v[2], v[3]), last_);
  }
  MILLRACE_SIMD quads high(const words* v) const noexcept {
    return __builtin_ia32_pmaddwd256(high_pairs(v[0], v[1]), first_) +
           __builtin_ia32_pmaddwd256(high_pairs(v[2], v[3]), last_);
  }

 private:
  MILLRACE_SIMD static words pair_of(const std::int16_t* factors) noexcept {
    int both;
    std::memcpy(&both, factors, sizeof both);
    return as_words(quads_of(both));
  }
  words first_, last_;
};

/// Tables and masks that move pixel p of channel c to byte (3 p + c) mod 16 of a block.
struct rgb_interleaving {
  alignas(32) std::uint8_t order[3][32], inverse_order[3][32], mask[3][32];
  constexpr rgb_interleaving() : order(), inverse_order(), mask() {
    for (unsigned c = 0; c < 3; ++c)
      for (unsigned p = 0; p < 16; ++p) {
        const unsigned at = (3 * p + c) % 16;
        order[c][at] = order[c][at + 16] = static_cast<std::uint8_t>(p);
        inverse_order[c][p] = inverse_order[c][p + 16] = static_cast<std::uint8_t>(at);
        mask[c][p] = mask[c][p + 16] = p % 3 == c ? 0xff : 0;
      }
  }
};
inline constexpr rgb_interleaving interleaving{};

/// Writes interleaved pixels. If `streams` is set, stores bypass the cache, and addresses must be multiples of 32
/// bytes. `three_way_logic` accelerates blends.
template <bool streams = false, bool three_way_logic = false>
class rgb_writer {
 public:
  MILLRACE_SIMD rgb_writer() noexcept {
    for (unsigned c = 0; c < 3; ++c) {
      order_[c] = load_bytes(interleaving.order[c]);
      mask_[c] = load_bytes(interleaving.mask[c]);
    }
  }

  MILLRACE_SIMD void put(bytes red, bytes green, bytes blue, std::uint8_t* to) const noexcept {
    const bytes r = entries_of(red, order_[0]), g = entries_of(green, order_[1]), b = entries_of(blue, order_[2]);
    const auto x = (__m256i)select(select(b, g, mask_[1]), r, mask_[0]);
    const auto y = (__m256i)select(select(b, r, mask_[2]), g, mask_[0]);
    const auto z = (__m256i)select(select(r, g, mask_[2]), b, mask_[0]);
    store_vector<streams>(to, (quads)_mm256_permute2x128_si256(x, y, 0x20));
    store_vector<streams>(to + 32, (quads)_mm256_blend_epi32(z, x, 0xf0));
    store_vector<streams>(to + 64, (quads)_mm256_permute2x128_si256(y, z, 0x31));
  }

 private:
  /// Returns `b` where the mask has ones, else `a`.
  MILLRACE_SIMD static bytes select(bytes a, bytes b, bytes mask) noexcept {
    if constexpr (!three_way_logic) return selected(a, b, mask);
    asm("vpternlogq $0xd8, %2, %1, %0" : "+x"(a) : "x"(b), "xm"(mask));
    return a;
  }

  bytes order_[3], mask_[3];
};

/// Reads pixels of three bytes.
class rgb_reader {
 public:
  MILLRACE_SIMD rgb_reader() noexcept {
    for (unsigned c = 0; c < 3; ++c) {
      order_[c] = load_bytes(interleaving.inverse_order[c]);
      mask_[c] = load_bytes(interleaving.mask[c]);
    }
  }

  MILLRACE_SIMD channel_bytes load(const std::uint8_t* from) const noexcept {
    const bytes a = load_blocks(from, from + 48), b = load_blocks(from + 16, from + 64);
    const bytes c = load_blocks(from + 32, from + 80);
    return {entries_of(selected(selected(a, c, mask_[1]), b, mask_[2]), order_[0]),
            entries_of(selected(selected(a, c, mask_[2]), b, mask_[0]), order_[1]),
            entries_of(selected(selected(a, c, mask_[0]), b, mask_[1]), order_[2])};
  }

 private:
  bytes order_[3], mask_[3];
};
/// Returns the quads of both blocks alternately. Moves data between blocks.
MILLRACE_SIMD bytes by_turns(quads v) noexcept {
  return as_bytes(__builtin_shufflevector(v, v, 0, 4, 1, 5, 2, 6, 3, 7));
}
/// Loads pixels of four bytes.
MILLRACE_SIMD channel_bytes load_rgbx(const std::uint8_t* from) noexcept {
  static constexpr std::uint8_t by_channel[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  quads part[4];   // each block contains four pixels, four bytes per channel
  for (std::size_t k = 0; k < 4; ++k)
    part[k] = as_quads(entries_of(load_bytes(from + vector_bytes * k), load_table(by_channel)));
  const octs rg0 = as_octs(low_pairs(part[0], part[1])), rg1 = as_octs(low_pairs(part[2], part[3]));
  const octs b0 = as_octs(high_pairs(part[0], part[1])), b1 = as_octs(high_pairs(part[2], part[3]));
  return {by_turns(as_quads(low_pairs(rg0, rg1))), by_turns(as_quads(high_pairs(rg0, rg1))),
          by_turns(as_quads(low_pairs(b0, b1)))};
}

#else

MILLRACE_SIMD bytes clamped_bytes_in_order(words a, words b) noexcept { return clamped_bytes(a, b); }
template <int bits>
MILLRACE_SIMD bytes shifted_bytes(words a, words b) noexcept {
  return vqshrun_high_n_s16(vqshrun_n_s16(a, bits), b, bits);
}
template <int bits>
MILLRACE_SIMD bytes rounded_bytes(words a, words b) noexcept {
  return vqrshrun_high_n_s16(vqrshrun_n_s16(a, bits), b, bits);
}
template <int bits>
MILLRACE_SIMD words rounded_words(quads a, quads b) noexcept {
  return vqrshrn_high_n_s32(vqrshrn_n_s32(a, bits), b, bits);
}
MILLRACE_SIMD words thrice_plus(words a, words b) noexcept { return vmlaq_s16(b, a, vdupq_n_s16(3)); }
MILLRACE_SIMD words load_widened(const std::uint8_t* from) noexcept { return (words)vmovl_u8(vld1_u8(from)); }
template <int of_x, int of_y, int bits>
MILLRACE_SIMD words rounded_sums(words x, words y) noexcept {
  const int16x8_t a = x, b = y, of_a = vdupq_n_s16(of_x), of_b = vdupq_n_s16(of_y);
  return rounded_words<bits>(
      (quads)vmlal_s16(vmull_s16(vget_low_s16(a), vget_low_s16(of_a)), vget_low_s16(b), vget_low_s16(of_b)),
      (quads)vmlal_high_s16(vmull_high_s16(a, of_a), b, of_b));
}

class four_factors {
 public:
  MILLRACE_SIMD explicit four_factors(const std::int16_t* factors) noexcept : of_(vld1_s16(factors)) {}
  MILLRACE_SIMD quads low(const words* v) const noexcept {
    int32x4_t sum = vmull_lane_s16(vget_low_s16((int16x8_t)v[0]), of_, 0);
    sum = vmlal_lane_s16(sum, vget_low_s16((int16x8_t)v[1]), of_, 1);
    sum = vmlal_lane_s16(sum, vget_low_s16((int16x8_t)v[2]), of_, 2);
    return vmlal_lane_s16(sum, vget_low_s16((int16x8_t)v[3]), of_, 3);
  }
  MILLRACE_SIMD quads high(const words* v) const noexcept {
    int32x4_t sum = vmull_high_lane_s16((int16x8_t)v[0], of_, 0);
    sum = vmlal_high_lane_s16(sum, (int16x8_t)v[1], of_, 1);
    sum = vmlal_high_lane_s16(sum, (int16x8_t)v[2], of_, 2);
    return vmlal_high_lane_s16(sum, (int16x8_t)v[3], of_, 3);
  }

 private:
  int16x4_t of_;
};

/// No NEON store bypasses the cache.
template <bool streams = false, bool three_way_logic = false>
struct rgb_writer {
  MILLRACE_SIMD void put(bytes red, bytes green, bytes blue, std::uint8_t* to) const noexcept {
    const uint8x16x3_t rgb = {{red, green, blue}};
    vst3q_u8(to, rgb);
  }
};

struct rgb_reader {
  MILLRACE_SIMD channel_bytes load(const std::uint8_t* from) const noexcept {
    const uint8x16x3_t p = vld3q_u8(from);
    return {(bytes)p.val[0], (bytes)p.val[1], (bytes)p.val[2]};
  }
};
MILLRACE_SIMD channel_bytes load_rgbx(const std::uint8_t* from) noexcept {
  const uint8x16x4_t p = vld4q_u8(from);
  return {(bytes)p.val[0], (bytes)p.val[1], (bytes)p.val[2]};
}

#endif

/// Calls use(writer) with an rgb_writer whose template arguments are `streams` and `three_way_logic`.
template <class Use>
MILLRACE_SIMD void with_rgb_writer(bool streams, bool three_way_logic, const Use& use) noexcept {
  if constexpr (!has_streaming) use(rgb_writer<>());
  else if (!streams) use(rgb_writer<>());
  else if (three_way_logic) use(rgb_writer<true, true>());
  else use(rgb_writer<true, false>());
}

#include <millrace/simd/layer_end.inc>

#endif
