// The word layer of AVX-512 with VNNI and VBMI: the operations of words_avx2.hpp in registers of four blocks. Only
// kernels that are faster with this layer use it.
//
//   #define MILLRACE_WIDE_KERNELS                                      // for_each_layer.inc includes this layer
//   #define MILLRACE_KERNELS <millrace/image/jpeg/baseline/inverse_dct_body.inc>
//   #include <millrace/simd/for_each_layer.inc>                        // defines avx512::..., avx2::... or neon::...
//
// All functions are inlined, and may be called only from functions with the same target. Some functions use inline
// assembly or masks of ones, because g++ 12 warns about plain intrinsics or compiles them to other instructions.
// Threads: any; all functions except stores are pure.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __x86_64__

#include <millrace/simd/avx512_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail { namespace avx512 {

inline constexpr std::size_t blocks = 4;
#include <millrace/simd/words_common.inc>

MILLRACE_SIMD words low_pairs(words a, words b) noexcept {
  return (words)_mm512_unpacklo_epi16((__m512i)a, (__m512i)b);
}
MILLRACE_SIMD words high_pairs(words a, words b) noexcept {
  return (words)_mm512_unpackhi_epi16((__m512i)a, (__m512i)b);
}
MILLRACE_SIMD bytes low_pairs(bytes a, bytes b) noexcept { return (bytes)_mm512_unpacklo_epi8((__m512i)a, (__m512i)b); }
MILLRACE_SIMD bytes high_pairs(bytes a, bytes b) noexcept {
  return (bytes)_mm512_unpackhi_epi8((__m512i)a, (__m512i)b);
}
MILLRACE_SIMD quads low_pairs(quads a, quads b) noexcept {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
}
MILLRACE_SIMD quads high_pairs(quads a, quads b) noexcept {
  return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
}
MILLRACE_SIMD octs low_pairs(octs a, octs b) noexcept {
  return __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
}
MILLRACE_SIMD octs high_pairs(octs a, octs b) noexcept {
  return __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
}
MILLRACE_SIMD words rounded_products(words a, words b) noexcept {
  return (words)_mm512_mulhrs_epi16((__m512i)a, (__m512i)b);
}
MILLRACE_SIMD words high_products(words a, words b) noexcept {
  return (words)_mm512_mulhi_epi16((__m512i)a, (__m512i)b);
}
MILLRACE_SIMD words unsigned_saturating_sums(words a, words b) noexcept {
  return (words)_mm512_adds_epu16((__m512i)a, (__m512i)b);
}
MILLRACE_SIMD words saturating_sums(words a, words b) noexcept {
  return (words)_mm512_adds_epi16((__m512i)a, (__m512i)b);
}
MILLRACE_SIMD words clamped_words(quads a, quads b) noexcept {
  return (words)_mm512_packs_epi32((__m512i)a, (__m512i)b);
}
MILLRACE_SIMD bytes clamped_bytes(words a, words b) noexcept {
  return (bytes)_mm512_packus_epi16((__m512i)a, (__m512i)b);
}
MILLRACE_SIMD bytes clamped_bytes_in_order(words a, words b) noexcept {
  const octs v = (octs)clamped_bytes(a, b);
  return (bytes)__builtin_shufflevector(v, v, 0, 2, 4, 6, 1, 3, 5, 7);
}
MILLRACE_SIMD bytes clamped_byte_pairs(words a, words b) noexcept {
  const __m128i zip = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
  return (bytes)_mm512_shuffle_epi8((__m512i)clamped_bytes(a, b), _mm512_maskz_broadcast_i32x4(0xffff, zip));
}
MILLRACE_SIMD words load_widened(const std::uint8_t* from) noexcept {
  return (words)_mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i*)from));
}
MILLRACE_SIMD bool any_of(words a, words b) noexcept { return _mm512_test_epi16_mask((__m512i)a, (__m512i)b) != 0; }

template <int...>
struct pair_products {
  template <int of_x, int of_y>
  MILLRACE_SIMD static quads of(words xy) noexcept {
    return onto<of_x, of_y>(quads_of(0), xy);
  }
  template <int of_x, int of_y>
  MILLRACE_SIMD static quads onto(quads sum, words xy) noexcept {
    static constexpr std::int16_t factors[2] = {of_x, of_y};
    asm("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(xy), "m"(factors));
    return sum;
  }
  template <int bits>
  MILLRACE_SIMD static words narrowed(quads low, quads high) noexcept {
    quads joint = low >> bits;
    // Selects bits of %0 where %2 has ones, and bits of %1 elsewhere.
    asm("vpternlogd $0xe4, %2, %1, %0"
        : "+v"(joint)
        : "v"(bits <= 16 ? high << (16 - bits) : high >> (bits - 16)), "v"(quads_of(0xffff)));
    return as_words(joint);
  }
};
#include <millrace/simd/words_x86.inc>

using half_register [[gnu::vector_size(32)]] = std::int16_t;

/// Rows of coefficients from two consecutive pairs of blocks. Each row of a pair is aligned to 32 bytes.
struct block_rows {
  std::int16_t* at;
  static constexpr std::size_t second_pair = 144;   // offset of the second pair of blocks, in elements

  MILLRACE_SIMD words load(std::size_t row) const noexcept {
    return joined(at + 16 * row, at + 16 * row + second_pair);
  }
  MILLRACE_SIMD void clear(std::size_t row) const noexcept {
    *static_cast<volatile half_register*>(__builtin_assume_aligned(at + 16 * row, 32)) = half_register{};
    *static_cast<volatile half_register*>(__builtin_assume_aligned(at + 16 * row + second_pair, 32)) = half_register{};
  }

 private:
  friend struct step_rows;
  MILLRACE_SIMD static half_register half_at(const std::int16_t* from) noexcept {
    return *static_cast<const half_register*>(__builtin_assume_aligned(from, 32));
  }
  MILLRACE_SIMD static words joined(const std::int16_t* low, const std::int16_t* high) noexcept {
    return __builtin_shufflevector(half_at(low), half_at(high), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                                   16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
  }
};
struct step_rows {
  const std::int16_t* at;
  MILLRACE_SIMD words load(std::size_t row) const noexcept { return block_rows::joined(at + 16 * row, at + 16 * row); }
};
MILLRACE_SIMD void store_halves(std::uint8_t* first, std::uint8_t* second, quads v) noexcept {
  const octs w = as_octs(v), both = __builtin_shufflevector(w, w, 0, 2, 4, 6, 1, 3, 5, 7);
  const auto low = __builtin_shufflevector(both, both, 0, 1, 2, 3);
  const auto high = __builtin_shufflevector(both, both, 4, 5, 6, 7);
  std::memcpy(first, &low, sizeof low);
  std::memcpy(second, &high, sizeof high);
}


using row_bytes = words;   // rgb_writer packs the words into bytes
inline constexpr std::size_t row_parts = 1;

/// The position of each interleaved byte in two registers: the first register contains red and green, the second
/// register contains blue. Blocks are in the order of avx2_columns.
struct rgb_interleaving {
  alignas(64) std::uint8_t from[96];
  constexpr rgb_interleaving() : from() {
    constexpr unsigned block_of[4] = {0, 2, 1, 3};   // the block of every eight columns
    for (unsigned p = 0; p < 32; ++p)
      for (unsigned c = 0; c < 3; ++c)
        from[3 * p + c] = static_cast<std::uint8_t>(16 * block_of[p / 8] + p % 8 + 8 * c + (c == 2 ? 48 : 0));
  }
};
inline constexpr rgb_interleaving interleaving{};

/// Writes 32 interleaved pixels. The stores bypass the cache.
class rgb_writer {
 public:
  MILLRACE_SIMD rgb_writer() noexcept
      : first_(_mm512_load_si512(interleaving.from)),
        rest_(_mm512_castsi256_si512(_mm256_load_si256((const __m256i*)(interleaving.from + 64)))) {}

  MILLRACE_SIMD void put(words r, words g, words b, std::uint8_t* to) const noexcept {
    const auto red_green = (__m512i)clamped_bytes(r, g), blue = (__m512i)clamped_bytes(b, b);
    const __m512i first = _mm512_permutex2var_epi8(red_green, first_, blue);
    const __m512i rest = _mm512_permutex2var_epi8(red_green, rest_, blue);
    auto* const out = (__m256i*)to;
    _mm256_stream_si256(out, __builtin_shufflevector(first, first, 0, 1, 2, 3));
    _mm256_stream_si256(out + 1, __builtin_shufflevector(first, first, 4, 5, 6, 7));
    _mm256_stream_si256(out + 2, __builtin_shufflevector(rest, rest, 0, 1, 2, 3));
  }

 private:
  __m512i first_, rest_;
};
template <class Use>
MILLRACE_SIMD void with_rgb_writer(bool, bool, const Use& use) noexcept {
  use(rgb_writer());
}

}}}}   // namespace millrace::detail::avx512

#include <millrace/simd/avx2_end.inc>

#endif
