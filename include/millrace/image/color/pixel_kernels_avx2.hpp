// The kernels of pixel_kernels.hpp with AVX2: the same bytes, 32 pixels at a time.
//
//   if (mr::detail::cpu_has_avx2()) mr::detail::avx2_pixels::saturate(row, 50'176, 1.4F);
//
// With byte shuffles, a table of 256 entries is 16 rows of 16 entries, and the higher four bits select one of the 16
// results. With AVX-512's byte permutations, the table is four rows of 64 entries.
// Shapes, units, errors, threads: see pixel_kernels.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/color/pixel_kernels.hpp>
#include <millrace/image/color/rgb_vectors_avx2.hpp>
#include <millrace/image/color/unfused_avx2.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>
#include <millrace/simd/cpu_features.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct avx2_pixels : portable_pixels {
  static void apply(const pending_tables& tables, std::uint8_t* data, std::size_t pixels) noexcept {
    apply(tables, data, pixels, cpu_has_byte_permutations());
  }
  static void apply(const pending_tables& tables, std::uint8_t* data, std::size_t pixels,
                    bool byte_permutations) noexcept {
    if (byte_permutations) apply_by<permuted>(tables, data, pixels);
    else apply_by<shuffled>(tables, data, pixels);
  }

  static std::uint64_t luma_sum(const std::uint8_t* data, std::size_t pixels) noexcept {
    const avx2_rgb rgb;
    __m256i sums = _mm256_setzero_si256();
    const std::size_t vector_pixels = pixels / 32 * 32;
    for (std::size_t i = 0; i < vector_pixels; i += 32)
      sums = _mm256_add_epi64(sums, _mm256_sad_epu8(avx2_rgb::bytes(avx2_rgb::luma(rgb.load(data + 3 * i))),
                                                    _mm256_setzero_si256()));
    alignas(32) std::uint64_t parts[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(parts), sums);
    return parts[0] + parts[1] + parts[2] + parts[3] +
           portable_pixels::luma_sum(data + 3 * vector_pixels, pixels - vector_pixels);
  }

  static void make_gray(std::uint8_t* data, std::size_t pixels) noexcept {
    const avx2_rgb rgb;
    avx2_rgb::for_each_32(data, pixels, [&](std::uint8_t* at) {
      const __m256i luma = avx2_rgb::bytes(avx2_rgb::luma(rgb.load(at)));
      rgb.store({luma, luma, luma}, at);
    });
  }

  static void saturate(std::uint8_t* data, std::size_t pixels, float factor) noexcept {
    const avx2_rgb rgb;
    const __m256 f = _mm256_set1_ps(factor);
    avx2_rgb::for_each_32(data, pixels, [&](std::uint8_t* at) {
      const rgb_bytes p = rgb.load(at);
      const quads_of_32 luma = avx2_rgb::luma(p);
      rgb.store({blended_with(luma, p.r, f), blended_with(luma, p.g, f), blended_with(luma, p.b, f)}, at);
    });
  }

  static std::array<level_range, 3> ranges(const std::uint8_t* data, std::size_t pixels) noexcept {
    constexpr std::size_t period = 96;   // number of bytes after which the channels in a register repeat
    const std::size_t vector_bytes = 3 * pixels / period * period;
    __m256i low[3], high[3];
    for (std::size_t k = 0; k < 3; ++k) low[k] = _mm256_set1_epi8(-1), high[k] = _mm256_setzero_si256();
    for (std::size_t i = 0; i < vector_bytes; i += period)
      for (std::size_t k = 0; k < 3; ++k) {
        const __m256i bytes = load(data + i + 32 * k);
        low[k] = _mm256_min_epu8(low[k], bytes);
        high[k] = _mm256_max_epu8(high[k], bytes);
      }
    std::array<level_range, 3> result = portable_pixels::ranges(data + vector_bytes, pixels - vector_bytes / 3);
    alignas(32) std::uint8_t lows[period], highs[period];
    for (std::size_t k = 0; k < 3; ++k) {
      store(lows + 32 * k, low[k]);
      store(highs + 32 * k, high[k]);
    }
    for (std::size_t i = 0; i < period; ++i) {
      level_range& r = result[i % 3];
      if (lows[i] < r.low) r.low = lows[i];
      if (highs[i] > r.high) r.high = highs[i];
    }
    return result;
  }

 private:
  static __m256i load(const std::uint8_t* from) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static void store(std::uint8_t* to, __m256i v) noexcept { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }

  static __m256i blended_with(const quads_of_32& background, __m256i bytes, __m256 factor) noexcept {
    quads_of_32 values = avx2_rgb::quads(bytes);
    for (unsigned k = 0; k < 4; ++k) values.q[k] = blended_8(background.q[k], values.q[k], factor);
    return avx2_rgb::bytes(values);
  }

  /// A table for byte shuffles.
  class shuffled {
   public:
    explicit shuffled(const byte_table& table) noexcept : rows_(table.data()) {}

    __m256i of(__m256i v) const noexcept {
      const __m256i low = _mm256_and_si256(v, _mm256_set1_epi8(15));
      // A selection reads the highest bit of each byte, so the shifts move bits 4, 5 and 6 there.
      const __m256i bit4 = _mm256_slli_epi16(v, 3), bit5 = _mm256_slli_epi16(v, 2), bit6 = _mm256_slli_epi16(v, 1);
      const auto of_16 = [&](int row) {
        return _mm256_shuffle_epi8(
            _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rows_ + 16 * row))), low);
      };
      const auto of_32 = [&](int row) { return avx2_rgb::select(of_16(row), of_16(row + 1), bit4); };
      const auto of_64 = [&](int row) { return avx2_rgb::select(of_32(row), of_32(row + 2), bit5); };
      const auto of_128 = [&](int row) { return avx2_rgb::select(of_64(row), of_64(row + 4), bit6); };
      return avx2_rgb::select(of_128(0), of_128(8), v);
    }

   private:
    const std::uint8_t* rows_;
  };

  /// A table for AVX-512's byte permutations in registers of 256 bits. The permutations are inline assembly, because
  /// compilers accept their builtins only in functions with a matching target.
  class permuted {
   public:
    explicit permuted(const byte_table& table) noexcept {
      for (std::size_t k = 0; k < 8; ++k) part_[k] = load(table.data() + 32 * k);
    }

    __m256i of(__m256i v) const noexcept {
      const __m256i bit6 = _mm256_slli_epi16(v, 1);
      return avx2_rgb::select(avx2_rgb::select(of_64(v, 0), of_64(v, 2), bit6),
                              avx2_rgb::select(of_64(v, 4), of_64(v, 6), bit6), v);
    }

   private:
    __m256i of_64(__m256i v, std::size_t part) const noexcept {
      asm("vpermi2b %2, %1, %0" : "+x"(v) : "x"(part_[part]), "xm"(part_[part + 1]));
      return v;
    }

    __m256i part_[8];
  };

  template <class Table>
  static void apply_by(const pending_tables& tables, std::uint8_t* data, std::size_t pixels) noexcept {
    if (tables.equal()) {
      const Table table(tables[0]);
      avx2_rgb::for_each_32(data, pixels, [&](std::uint8_t* at) {
        for (std::size_t k = 0; k < 3; ++k) store(at + 32 * k, table.of(load(at + 32 * k)));
      });
      return;
    }
    const avx2_rgb rgb;
    const Table red(tables[0]), green(tables[1]), blue(tables[2]);
    avx2_rgb::for_each_32(data, pixels, [&](std::uint8_t* at) {
      const rgb_bytes p = rgb.load(at);
      rgb.store({red.of(p.r), green.of(p.g), blue.of(p.b)}, at);
    });
  }
};

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
