// The word layer of AVX2: operations on 256-bit registers of words (16 bits), quads (32), octs (64) and bytes.
//
//   using namespace mr::detail::avx2;
//   [[gnu::target("avx2")]] words means(words a, words b) { return (a + b) >> 1; }   // compiler operators
//   [[gnu::target("avx2")]] bytes limited(words a, words b) { return clamped_bytes(a, b); }
//
// Kernels are written once, for all layers (words_avx2.hpp, words_neon.hpp), and compiled by for_each_layer.inc. All
// layers have the same operations with the same results per block. A block is 128 bits. A NEON register has one block,
// and an AVX2 register has two blocks. No operation moves data between blocks, except where its comment says so.
// `blocks`, `vector_words` and similar constants are the sizes of a layer.
// All functions are inlined. Call them only from functions that are compiled for the same instructions. Threads: any;
// all functions except stores are pure.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __x86_64__

#include <immintrin.h>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail { namespace avx2 {

inline constexpr std::size_t blocks = 2;
#include <millrace/simd/words_common.inc>

using raw = __m256i;
#define MILLRACE_X86(name) _mm256_##name

MILLRACE_SIMD quads low_pairs(quads a, quads b) noexcept { return (quads)_mm256_unpacklo_epi32((raw)a, (raw)b); }
MILLRACE_SIMD quads high_pairs(quads a, quads b) noexcept { return (quads)_mm256_unpackhi_epi32((raw)a, (raw)b); }
MILLRACE_SIMD octs low_pairs(octs a, octs b) noexcept { return (octs)_mm256_unpacklo_epi64((raw)a, (raw)b); }
MILLRACE_SIMD octs high_pairs(octs a, octs b) noexcept { return (octs)_mm256_unpackhi_epi64((raw)a, (raw)b); }

/// Multiplies pairs by two factors. The template arguments list all factors, which the NEON version keeps in registers.
template <int...>
struct pair_products {
  /// Returns x * of_x + y * of_y for each pair.
  template <int of_x, int of_y>
  MILLRACE_SIMD static quads of(words xy) noexcept {
    constexpr auto factors = static_cast<int>((of_x & 0xffff) | static_cast<unsigned>(of_y) << 16);
    return __builtin_ia32_pmaddwd256(xy, as_words(quads_of(factors)));
  }
  /// Returns sum + x * of_x + y * of_y.
  template <int of_x, int of_y>
  MILLRACE_SIMD static quads onto(quads sum, words xy) noexcept {
    return sum + of<of_x, of_y>(xy);
  }

  /// Removes `bits` fraction bits from the sums of low and high columns. Returns one word per column, in the order that
  /// transposed_pairs() expects.
  template <int bits>
  MILLRACE_SIMD static words narrowed(quads low, quads high) noexcept {
    const quads shifted = bits <= 16 ? high << (16 - bits) : high >> (bits - 16);
    return __builtin_shufflevector(as_words(low >> bits), as_words(shifted), 0, 17, 2, 19, 4, 21, 6, 23, 8, 25, 10, 27,
                                   12, 29, 14, 31);
  }
};

#include <millrace/simd/words_x86.inc>
#undef MILLRACE_X86

/// Returns (v + 2^(bits-1)) >> bits, clamped to -128..127, as signed bytes. Each block contains the bytes of `a`, then
/// the bytes of `b`. The addition must not overflow.
template <int bits>
MILLRACE_SIMD bytes rounded_signed_bytes(words a, words b) noexcept {
  const words half = words_of(1 << (bits - 1));
  return (bytes)__builtin_ia32_packsswb256((a + half) >> bits, (b + half) >> bits);
}
/// Returns (a + b) * 2^bits for the signed bytes in the first half of each block. high_sums() is for the second half.
template <int bits>
MILLRACE_SIMD words low_sums(bytes a, bytes b) noexcept {
  static_assert(bits >= 0 && bits < 8);
  return sums_of_products(bytes_of(1 << bits), low_pairs(a, b));
}
template <int bits>
MILLRACE_SIMD words high_sums(bytes a, bytes b) noexcept {
  static_assert(bits >= 0 && bits < 8);
  return sums_of_products(bytes_of(1 << bits), high_pairs(a, b));
}
/// Convert the unsigned numbers in the first or the second half of each block to numbers of twice the size.
MILLRACE_SIMD words low_words(bytes v) noexcept { return as_words(low_pairs(v, bytes{})); }
MILLRACE_SIMD words high_words(bytes v) noexcept { return as_words(high_pairs(v, bytes{})); }
MILLRACE_SIMD quads low_quads(words v) noexcept { return as_quads(low_pairs(v, words{})); }
MILLRACE_SIMD quads high_quads(words v) noexcept { return as_quads(high_pairs(v, words{})); }
/// Returns (v + 2^23) >> 24 as bytes. Each block contains the bytes of `a`, `b`, `c` and `d`, in this order.
MILLRACE_SIMD bytes rounded_top_bytes(unsigned_quads a, unsigned_quads b, unsigned_quads c, unsigned_quads d) noexcept {
  const unsigned_quads half = unsigned_quads{} + (1U << 23);
  return clamped_bytes(clamped_words(as_quads((a + half) >> 24), as_quads((b + half) >> 24)),
                       clamped_words(as_quads((c + half) >> 24), as_quads((d + half) >> 24)));
}
/// Two weights for bytes. A weight is from 0 to 32767.
struct byte_weights {
  MILLRACE_SIMD byte_weights(int of_x, int of_y) noexcept : both_(quads_of(of_y << 16 | of_x)) {}

  /// Adds x * of_x + y * of_y. In each block, sums[k] contains the sums of bytes 4 k to 4 k + 3.
  MILLRACE_SIMD void add_to(quads* sums, bytes x, bytes y) const noexcept {
    const bytes low = low_pairs(x, y), high = high_pairs(x, y);
    sums[0] += __builtin_ia32_pmaddwd256(low_words(low), as_words(both_));
    sums[1] += __builtin_ia32_pmaddwd256(high_words(low), as_words(both_));
    sums[2] += __builtin_ia32_pmaddwd256(low_words(high), as_words(both_));
    sums[3] += __builtin_ia32_pmaddwd256(high_words(high), as_words(both_));
  }

 private:
  quads both_;
};
/// Sets sums[k] to (x * of_x + y * of_y + z * of_z + 2^15) >> 16 for bytes 4 k to 4 k + 3 of each block. of_y is even;
/// the other weights and of_y / 2 are below 2^15.
template <int of_x, int of_y, int of_z>
MILLRACE_SIMD void weighted_means(quads* sums, bytes x, bytes y, bytes z) noexcept {
  static_assert(of_y % 2 == 0);
  const words of_xz = as_words(quads_of(of_z << 16 | of_x)), half_of_y = words_of(of_y / 2);
  const bytes xz[2] = {low_pairs(x, z), high_pairs(x, z)}, yy[2] = {low_pairs(y, y), high_pairs(y, y)};
  for (std::size_t k = 0; k < 2; ++k) {
    const quads low = __builtin_ia32_pmaddwd256(low_words(xz[k]), of_xz) +
                      __builtin_ia32_pmaddwd256(low_words(yy[k]), half_of_y);
    const quads high = __builtin_ia32_pmaddwd256(high_words(xz[k]), of_xz) +
                       __builtin_ia32_pmaddwd256(high_words(yy[k]), half_of_y);
    sums[2 * k] = as_quads(as_unsigned(low + quads_of(1 << 15)) >> 16);
    sums[2 * k + 1] = as_quads(as_unsigned(high + quads_of(1 << 15)) >> 16);
  }
}
/// Returns four vectors of numbers from 0 to 255 as bytes. Each block contains the bytes of q[0], q[1], q[2] and q[3].
MILLRACE_SIMD bytes narrowed_bytes(const quads* q) noexcept {
  return clamped_bytes(clamped_words(q[0], q[1]), clamped_words(q[2], q[3]));
}
/// Returns four vectors of the numbers 0 and -1 as bytes, in the order of narrowed_bytes().
MILLRACE_SIMD bytes narrowed_masks(const quads* q) noexcept {
  return (bytes)__builtin_ia32_packsswb256(clamped_words(q[0], q[1]), clamped_words(q[2], q[3]));
}
/// Returns sums + the sums of two adjacent products of `a` and `b`. NEON adds other products to each sum.
MILLRACE_SIMD quads add_products(quads sums, words a, words b) noexcept {
  return sums + __builtin_ia32_pmaddwd256(a, b);
}
/// Returns the total of the elements of each vector.
MILLRACE_SIMD quads totals(const quads (&v)[vector_quads]) noexcept {
  const raw a = _mm256_hadd_epi32((raw)v[0], (raw)v[1]), b = _mm256_hadd_epi32((raw)v[2], (raw)v[3]);
  const raw c = _mm256_hadd_epi32((raw)v[4], (raw)v[5]), d = _mm256_hadd_epi32((raw)v[6], (raw)v[7]);
  const raw low = _mm256_hadd_epi32(a, b), high = _mm256_hadd_epi32(c, d);   // each block contains half of each total
  return (quads)_mm256_permute2x128_si256(low, high, 0x20) + (quads)_mm256_permute2x128_si256(low, high, 0x31);
}
/// Loads 16 bytes into each block.
MILLRACE_SIMD bytes load_blocks(const std::uint8_t* low, const std::uint8_t* high) noexcept {
  return (bytes)_mm256_inserti128_si256(_mm256_castsi128_si256((__m128i)load_16(low)), (__m128i)load_16(high), 1);
}
/// Returns the sums of every eight adjacent bytes.
MILLRACE_SIMD octs sums_of_eight(bytes v) noexcept { return (octs)_mm256_sad_epu8((raw)v, _mm256_setzero_si256()); }
/// Returns the bytes of `b` where the mask is 255, and the bytes of `a` where the mask is 0. Uses inline assembly,
/// because GCC would first compare the mask with 0. AVX2 reads only the highest bit of each byte of the mask.
MILLRACE_SIMD bytes selected(bytes a, bytes b, bytes mask) noexcept {
  bytes blended;
  asm("vpblendvb %3, %2, %1, %0" : "=x"(blended) : "x"(a), "x"(b), "x"(mask));
  return blended;
}
/// Loads the same 16 bytes into each block.
MILLRACE_SIMD bytes load_table(const std::uint8_t* from) noexcept {
  return (bytes)_mm256_broadcastsi128_si256((__m128i)load_16(from));
}
/// Return the products of unsigned words in the first or in the second half of each block.
MILLRACE_SIMD quads low_quad_products(words a, words b) noexcept {
  return as_quads(low_pairs(a * b, as_words(high_products(as_unsigned(a), as_unsigned(b)))));
}
MILLRACE_SIMD quads high_quad_products(words a, words b) noexcept {
  return as_quads(high_pairs(a * b, as_words(high_products(as_unsigned(a), as_unsigned(b)))));
}

/// Convert between integers and floats. nearest() rounds ties to even. nearest() and truncated() are undefined for
/// results of more than 32 bits.
MILLRACE_SIMD floats to_floats(quads v) noexcept { return _mm256_cvtepi32_ps((raw)v); }
MILLRACE_SIMD quads truncated(floats v) noexcept { return (quads)_mm256_cvttps_epi32(v); }
MILLRACE_SIMD quads nearest(floats v) noexcept { return (quads)_mm256_cvtps_epi32(v); }
/// Returns a * b + c. The product is rounded, then the sum. Compilers may fuse both operations, even if they are
/// intrinsics. The inline assembly prevents this.
MILLRACE_SIMD floats sum_of_product(floats a, floats b, floats c) noexcept {
  floats product = a * b;
  asm("" : "+x"(product));   // the compiler cannot optimize across this
  return product + c;
}

/// Returns whether any bit is set in both `a` and `b`.
MILLRACE_SIMD bool any_of(words a, words b) noexcept { return __builtin_ia32_ptestz256(as_octs(a), as_octs(b)) == 0; }

/// Returns the first eight bytes as words. low_bytes() is the reverse, for words from 0 to 255.
MILLRACE_SIMD word_block widened(byte_block v) noexcept { return (word_block)_mm_cvtepu8_epi16((__m128i)v); }
MILLRACE_SIMD byte_block low_bytes(word_block v) noexcept {
  return (byte_block)_mm_packus_epi16((__m128i)v, (__m128i)v);
}
/// Returns (a + b) / 2, rounded down.
MILLRACE_SIMD byte_block half_sums(byte_block a, byte_block b) noexcept {
  return (byte_block)_mm_avg_epu8((__m128i)a, (__m128i)b) - ((a ^ b) & 1);
}
/// For each i, returns byte places[i] of `v`, or 0 if places[i] is 128 or more. Other values of places[i] are below 16.
MILLRACE_SIMD byte_block bytes_at(byte_block v, byte_block places) noexcept {
  return (byte_block)_mm_shuffle_epi8((__m128i)v, (__m128i)places);
}

/// Returns quads that add up to the sum of all bytes.
MILLRACE_SIMD quads byte_sums(bytes v) noexcept { return as_quads(sums_of_eight(v)); }
/// Returns quads that add up to the sum of v * weights. The weights are at most 64.
MILLRACE_SIMD quads weighted_byte_sums(bytes v, bytes weights) noexcept {
  return __builtin_ia32_pmaddwd256(sums_of_products(v, weights), words_of(1));
}

/// The windows of samples from which columns_body.inc selects: a block per window.
inline constexpr std::size_t windows = 2, window_bytes = 16;
MILLRACE_SIMD bytes load_windows(const std::uint8_t* row, const std::ptrdiff_t (&base)[2]) noexcept {
  return load_blocks(row + base[0], row + base[1]);
}
/// Return the samples at the places `pick` of the windows as bytes, and as words where the odd places are 128.
MILLRACE_SIMD bytes samples_at(bytes samples, bytes pick) noexcept { return entries_of(samples, pick); }
MILLRACE_SIMD words word_samples_at(bytes samples, bytes pick) noexcept { return as_words(entries_of(samples, pick)); }
/// Returns sums of outputs as words, in the order of the columns. `clamps`: whether sums may exceed 16 bits.
template <bool clamps>
MILLRACE_SIMD words columns_of(quads low, quads high) noexcept {
  return clamped_words(low, high);
}

/// Transposes two rows of words that narrowed() returned. The result contains each row twice, and omits columns 2 and
/// 6.
MILLRACE_SIMD column_pairs transposed_two(words top, words bottom) noexcept {
  const auto a = (raw)low_pairs(as_quads(top), as_quads(bottom));
  const auto b = (raw)high_pairs(as_quads(top), as_quads(bottom));
  return {(words)_mm256_shuffle_epi32(a, 0x44), words{}, (words)_mm256_shuffle_epi32(a, 0xee),
          (words)_mm256_shuffle_epi32(b, 0xee)};
}

/// Loads a row of coefficients.
MILLRACE_SIMD words load_row(const std::int16_t* at, std::size_t) noexcept {
  return *static_cast<const words*>(__builtin_assume_aligned(at, 32));
}
/// Writes eight bytes of each block to `first`, and the other eight bytes of each block to `second`.
MILLRACE_SIMD void store_halves(std::uint8_t* first, std::uint8_t* second, quads v) noexcept {
  const octs w = as_octs(v), both = __builtin_shufflevector(w, w, 0, 2, 1, 3);
  const auto low = __builtin_shufflevector(both, both, 0, 1), high = __builtin_shufflevector(both, both, 2, 3);
  std::memcpy(first, &low, 16);
  std::memcpy(second, &high, 16);
}
/// Writes four bytes of each block to each of four rows. `left` contains columns 0 and 1, and `right` contains columns
/// 2 and 3, as returned by narrowed().
MILLRACE_SIMD void store_four_rows(std::uint8_t* to, std::size_t stride_bytes, words left, words right) noexcept {
  const quads a = as_quads(left), b = as_quads(right);
  const quads v = as_quads(clamped_bytes(as_words(low_pairs(a, b)), as_words(high_pairs(a, b))));
  const octs rows = as_octs(__builtin_shufflevector(v, v, 0, 4, 1, 5, 2, 6, 3, 7));
  for (std::size_t i = 0; i < 4; ++i) {
    const long long eight = rows[i];
    std::memcpy(to + i * stride_bytes, &eight, 8);
  }
}
/// Writes two bytes of each block to each of two rows. `columns` contains columns 0 and 1, as returned by narrowed().
MILLRACE_SIMD void store_two_rows(std::uint8_t* to, std::size_t stride_bytes, words columns) noexcept {
  const quads v = as_quads(clamped_bytes(columns, columns));
  const auto left = static_cast<std::uint32_t>(v[0]), right = static_cast<std::uint32_t>(v[4]);
  const std::uint32_t rows[2] = {(left & 0xffff) | right << 16, left >> 16 | (right & 0xffff0000)};
  std::memcpy(to, rows, 4);
  std::memcpy(to + stride_bytes, rows + 1, 4);
}

}}}}   // namespace millrace::detail::avx2

#include <millrace/simd/avx2_end.inc>

#endif
