// All AVX2 kernels for a plane_resizer, including the short kernels that write normalized numbers.
//
//   mr::detail::basic_plane_resizer<mr::detail::avx2_plane_kernels> r;       // only if cpu_has_avx2()
//
// Shapes, units, errors, threads: see pixel_target.hpp, fancy_upsampling.hpp, column_kernels.hpp, row_kernels.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/resize/column_kernels_avx2.hpp>
#include <millrace/image/resize/fancy_upsampling_avx2.hpp>
#include <millrace/image/resize/pixel_target.hpp>
#include <millrace/image/resize/row_kernels_avx2.hpp>
#include <millrace/image/resize/tap_weights_avx2.hpp>
#include <millrace/simd/bf16_avx2.hpp>

#include <type_traits>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct avx2_numbers {
  template <class T>
  static void write(const std::uint8_t* from, std::size_t count, T* to, const number_scale& s) noexcept {
    const __m256 scale = _mm256_set1_ps(s.scale), bias = _mm256_set1_ps(s.bias);
    std::size_t i = 0;
    for (; i + 16 <= count; i += 16) {
      const __m256 a = _mm256_fmadd_ps(floats(from + i), scale, bias);
      const __m256 b = _mm256_fmadd_ps(floats(from + i + 8), scale, bias);
      if constexpr (std::is_same_v<T, float>) {
        put(to + i, _mm256_castps_si256(a), s.streams);
        put(to + i + 8, _mm256_castps_si256(b), s.streams);
      } else if constexpr (std::is_same_v<T, f16>) {
        const __m128i low = _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT);
        const __m128i high = _mm256_cvtps_ph(b, _MM_FROUND_TO_NEAREST_INT);
        put(to + i, _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1), s.streams);
      } else {
        const __m256i crossed = _mm256_packus_epi32(upper_halves(a), upper_halves(b));   // packs in 128-bit lanes
        put(to + i, _mm256_permute4x64_epi64(crossed, 0xd8), s.streams);
      }
    }
    portable_numbers::write(from + i, count - i, to + i, s);
  }

  static void split(const std::uint8_t* pixels, std::size_t count, std::uint8_t* const* lines) noexcept {
    const __m256i by_channel = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15,
                                                0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m256i join = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    std::size_t x = 0;
    for (; x + 32 <= count; x += 32) {
      __m256i part[4];   // each contains eight pixels, eight bytes per channel
      for (std::size_t k = 0; k < 4; ++k) {
        const auto* at = reinterpret_cast<const __m256i*>(pixels + 4 * x + 32 * k);
        part[k] = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(_mm256_loadu_si256(at), by_channel), join);
      }
      const __m256i rg0 = _mm256_permute2x128_si256(part[0], part[1], 0x20);
      const __m256i rg1 = _mm256_permute2x128_si256(part[2], part[3], 0x20);
      const __m256i b0 = _mm256_permute2x128_si256(part[0], part[1], 0x31);
      const __m256i b1 = _mm256_permute2x128_si256(part[2], part[3], 0x31);
      put(lines[0] + x, _mm256_permute4x64_epi64(_mm256_unpacklo_epi64(rg0, rg1), 0xd8), false);
      put(lines[1] + x, _mm256_permute4x64_epi64(_mm256_unpackhi_epi64(rg0, rg1), 0xd8), false);
      put(lines[2] + x, _mm256_permute4x64_epi64(_mm256_unpacklo_epi64(b0, b1), 0xd8), false);
    }
    std::uint8_t* const rest[3] = {lines[0] + x, lines[1] + x, lines[2] + x};
    portable_numbers::split(pixels + 4 * x, count - x, rest);
  }

  static void finish_streaming() noexcept { _mm_sfence(); }

 private:
  static void put(void* to, __m256i v, bool streams) noexcept {
    auto* place = static_cast<__m256i*>(to);
    streams ? _mm256_stream_si256(place, v) : _mm256_storeu_si256(place, v);
  }

  static __m256 floats(const std::uint8_t* from) noexcept {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  }
};

struct avx2_plane_kernels {
  using taps = avx2_taps;
  using upsampling = avx2_upsampling;
  using columns = avx2_columns;
  using rows = avx2_rows;
  using numbers = avx2_numbers;
};

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
