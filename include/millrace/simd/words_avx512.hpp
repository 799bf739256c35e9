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

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __x86_64__

#include <immintrin.h>

#include <millrace/simd/avx512_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail { namespace avx512 {

inline constexpr std::size_t blocks = 4;
#include <millrace/simd/words_common.inc>

using raw = __m512i;
#define MILLRACE_X86(name) _mm512_##name

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
#undef MILLRACE_X86

MILLRACE_SIMD bytes clamped_bytes_in_order(words a, words b) noexcept {
  const octs v = (octs)clamped_bytes(a, b);
  return (bytes)__builtin_shufflevector(v, v, 0, 2, 4, 6, 1, 3, 5, 7);
}
MILLRACE_SIMD bytes load_table(const std::uint8_t* from) noexcept {
  return (bytes)_mm512_maskz_broadcast_i32x4(0xffff, (__m128i)load_16(from));
}
MILLRACE_SIMD words load_widened(const std::uint8_t* from) noexcept {
  return (words)_mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i*)from));
}
MILLRACE_SIMD bool any_of(words a, words b) noexcept { return _mm512_test_epi16_mask((raw)a, (raw)b) != 0; }

MILLRACE_SIMD quads add_products(quads sums, words a, words b) noexcept {
  return (quads)_mm512_dpwssd_epi32((raw)sums, (raw)a, (raw)b);
}
/// One window contains the samples of all outputs in a register.
inline constexpr std::size_t windows = 1, window_bytes = 64;
MILLRACE_SIMD bytes load_windows(const std::uint8_t* row, const std::ptrdiff_t (&base)[1]) noexcept {
  return load_bytes(row + base[0]);
}
MILLRACE_SIMD bytes samples_at(bytes samples, bytes pick) noexcept {
  return (bytes)_mm512_maskz_permutexvar_epi8(~__mmask64{0}, (raw)pick, (raw)samples);
}
MILLRACE_SIMD words word_samples_at(bytes samples, bytes pick) noexcept {
  return (words)_mm512_maskz_permutexvar_epi8(0x5555'5555'5555'5555, (raw)pick, (raw)samples);
}
/// Joins the sums of two times 16 adjacent outputs in the order of the columns of AVX2.
template <bool clamps>
MILLRACE_SIMD words columns_of(quads low, quads high) noexcept {
  alignas(64) static constexpr std::uint16_t crossed[32] = {0,  2,  4,  6,  8,  10, 12, 14, 32, 34, 36,
                                                            38, 40, 42, 44, 46, 16, 18, 20, 22, 24, 26,
                                                            28, 30, 48, 50, 52, 54, 56, 58, 60, 62};
  if constexpr (!clamps) return (words)_mm512_permutex2var_epi16((raw)low, _mm512_load_si512(crossed), (raw)high);
  const octs v = as_octs(clamped_words(low, high));
  return as_words(__builtin_shufflevector(v, v, 0, 2, 1, 3, 4, 6, 5, 7));
}

MILLRACE_SIMD words load_row(const std::int16_t* at, std::size_t to_second_pair) noexcept {
  using row_of_pair [[gnu::vector_size(32)]] = std::int16_t;
  const auto row = [&](std::size_t distance) MILLRACE_ALWAYS_INLINE {
    return *static_cast<const row_of_pair*>(__builtin_assume_aligned(at + distance, 32));
  };
  return __builtin_shufflevector(row(0), row(to_second_pair), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
                                 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
}
MILLRACE_SIMD void store_halves(std::uint8_t* first, std::uint8_t* second, quads v) noexcept {
  const octs w = as_octs(v), both = __builtin_shufflevector(w, w, 0, 2, 4, 6, 1, 3, 5, 7);
  const auto low = __builtin_shufflevector(both, both, 0, 1, 2, 3);
  const auto high = __builtin_shufflevector(both, both, 4, 5, 6, 7);
  std::memcpy(first, &low, sizeof low);
  std::memcpy(second, &high, sizeof high);
}

using row_bytes = words;   // rgb_writer packs them
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
    const auto red_green = (raw)clamped_bytes(r, g), blue = (raw)clamped_bytes(b, b);
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
