// Pixels in AVX2 registers: 32 at a time, one register for each channel, and the gray L of the pixels.
//
//   const mr::detail::avx2_rgb rgb;
//   mr::detail::avx2_rgb::for_each_32(data, pixels, [&](std::uint8_t* at) {
//     mr::detail::rgb_bytes p = rgb.load(at);
//     p.r = p.g;
//     rgb.store(p, at);
//   });
//
// The first half of a register contains pixels 0 to 15, the second half pixels 16 to 31. As 16-bit words, the pixels
// are in the order of unpacklo and unpackhi: pixels 0-7 and 16-23, then 8-15 and 24-31. Packing restores the order.
// Errors: none. Threads: pure functions; any thread.
#pragma once

#ifdef __x86_64__

#include <millrace/simd/pixel_words.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The channels of 32 pixels.
struct rgb_bytes {
  __m256i r, g, b;
};

/// Four registers of eight 32-bit numbers or floats each, for 32 pixels: 0-3 and 16-19, 4-7 and 20-23, and so on.
struct quads_of_32 {
  __m256i q[4];
};

/// The masks and shuffles that separate the channels. Channel c of pixel p is at byte 3 p + c, a position that differs
/// modulo 16 for each pixel. `order` is the inverse of the order in avx2::rgb_interleaving.
struct avx2_deinterleaving {
  alignas(32) std::uint8_t order[3][32], mask[3][32];
  constexpr avx2_deinterleaving() : order(), mask() {
    for (unsigned c = 0; c < 3; ++c)
      for (unsigned p = 0; p < 16; ++p) {
        order[c][p] = order[c][p + 16] = static_cast<std::uint8_t>((3 * p + c) % 16);
        mask[c][p] = mask[c][p + 16] = p % 3 == c ? 0xff : 0;
      }
  }
};

class avx2_rgb {
 public:
  avx2_rgb() noexcept {
    for (unsigned c = 0; c < 3; ++c) {
      order_[c] = _mm256_load_si256(reinterpret_cast<const __m256i*>(tables.order[c]));
      mask_[c] = _mm256_load_si256(reinterpret_cast<const __m256i*>(tables.mask[c]));
    }
  }

  rgb_bytes load(const std::uint8_t* from) const noexcept {
    const __m256i a = halves(from, from + 48), b = halves(from + 16, from + 64), c = halves(from + 32, from + 80);
    return {_mm256_shuffle_epi8(select(select(a, c, mask_[1]), b, mask_[2]), order_[0]),
            _mm256_shuffle_epi8(select(select(a, c, mask_[2]), b, mask_[0]), order_[1]),
            _mm256_shuffle_epi8(select(select(a, c, mask_[0]), b, mask_[1]), order_[2])};
  }

  void store(const rgb_bytes& p, std::uint8_t* to) const noexcept {
    out_.put(reinterpret_cast<avx2::bytes>(p.r), reinterpret_cast<avx2::bytes>(p.g),
             reinterpret_cast<avx2::bytes>(p.b), to);
  }

  /// Calls work(at) for each 32 pixels. The last, incomplete group is copied to a buffer of 32 pixels, and back.
  template <class Work>
  static void for_each_32(std::uint8_t* data, std::size_t pixels, const Work& work) noexcept {
    std::uint8_t* at = data;
    for (std::size_t left = pixels / 32; left > 0; --left, at += 96) work(at);
    if (const std::size_t rest = pixels % 32 * 3; rest > 0) {
      alignas(32) std::uint8_t last[96] = {};
      std::memcpy(last, at, rest);
      work(static_cast<std::uint8_t*>(last));
      std::memcpy(at, last, rest);
    }
  }

  /// Returns the bytes of `b` where the highest bit of the mask's byte is set, else the bytes of `a`. Uses inline
  /// assembly, because GCC would first compare the mask with 0.
  static __m256i select(__m256i a, __m256i b, __m256i mask) noexcept {
    __m256i blended;
    asm("vpblendvb %3, %2, %1, %0" : "=x"(blended) : "x"(a), "x"(b), "x"(mask));
    return blended;
  }

  /// Converts 32 bytes to 32-bit numbers.
  static quads_of_32 quads(__m256i bytes) noexcept {
    const __m256i zero = _mm256_setzero_si256();
    return quads(_mm256_unpacklo_epi8(bytes, zero), _mm256_unpackhi_epi8(bytes, zero));
  }
  static quads_of_32 quads(__m256i low_words, __m256i high_words) noexcept {
    const __m256i zero = _mm256_setzero_si256();
    return {{_mm256_unpacklo_epi16(low_words, zero), _mm256_unpackhi_epi16(low_words, zero),
             _mm256_unpacklo_epi16(high_words, zero), _mm256_unpackhi_epi16(high_words, zero)}};
  }

  /// Converts the numbers to bytes, clamped to 0..255.
  static __m256i bytes(const quads_of_32& n) noexcept {
    return _mm256_packus_epi16(_mm256_packs_epi32(n.q[0], n.q[1]), _mm256_packs_epi32(n.q[2], n.q[3]));
  }

  /// Returns the gray L of 32 pixels.
  static quads_of_32 luma(const rgb_bytes& p) noexcept {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i rb[2] = {_mm256_unpacklo_epi8(p.r, p.b), _mm256_unpackhi_epi8(p.r, p.b)};
    const __m256i gg[2] = {_mm256_unpacklo_epi8(p.g, p.g), _mm256_unpackhi_epi8(p.g, p.g)};
    quads_of_32 result;
    for (unsigned k = 0; k < 2; ++k) {
      result.q[2 * k] = luma_of_8(_mm256_unpacklo_epi8(rb[k], zero), _mm256_unpacklo_epi8(gg[k], zero));
      result.q[2 * k + 1] = luma_of_8(_mm256_unpackhi_epi8(rb[k], zero), _mm256_unpackhi_epi8(gg[k], zero));
    }
    return result;
  }

 private:
  static constexpr avx2_deinterleaving tables{};

  static __m256i halves(const std::uint8_t* low, const std::uint8_t* high) noexcept {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(low))),
                                   _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)), 1);
  }

  /// The factor 38470 exceeds the range of signed 16 bits. Therefore G is added twice, each time with half of the
  /// factor.
  static __m256i luma_of_8(__m256i red_blue, __m256i green_twice) noexcept {
    const __m256i sum = _mm256_add_epi32(
        _mm256_madd_epi16(red_blue, _mm256_set1_epi32(7'471 << 16 | 19'595)),
        _mm256_madd_epi16(green_twice, _mm256_set1_epi16(19'235)));
    return _mm256_srli_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(32'768)), 16);
  }

  __m256i order_[3], mask_[3];
  avx2::rgb_writer<false, false> out_;
};

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
