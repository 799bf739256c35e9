// The kernels of warp.hpp with AVX2: the same bytes, the channels of a pixel at once.
//
//   mr::detail::warp<mr::detail::avx2_warping> w;
//   if (mr::detail::cpu_has_avx2()) w.run(pixels, map, mr::detail::warp_filter::bilinear, {0, 0, 0});
//
// Errors, threads: warp.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/color/unfused_avx2.hpp>
#include <millrace/image/color/warp.hpp>
#include <millrace/image/simd/avx2_intrinsics.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <millrace/image/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct avx2_warping {
  static void bilinear(const warp_line& line) noexcept {
    run<0>(line, [](const auto& pixel_at, double dx, double dy) {
      const __m256d x = _mm256_set1_pd(dx);
      const __m256d above = between(channels(pixel_at(0, 0)), channels(pixel_at(1, 0)), x);
      const __m256d below = between(channels(pixel_at(0, 1)), channels(pixel_at(1, 1)), x);
      return _mm256_cvttpd_epi32(between(above, below, _mm256_set1_pd(dy)));
    });
  }

  static void bicubic(const warp_line& line) noexcept {
    run<1>(line, [](const auto& pixel_at, double dx, double dy) {
      const __m256d x = _mm256_set1_pd(dx);
      __m256d rows[4];
      for (std::ptrdiff_t k = 0; k < 4; ++k) {
        const __m256d values[4] = {channels(pixel_at(-1, k - 1)), channels(pixel_at(0, k - 1)),
                                   channels(pixel_at(1, k - 1)), channels(pixel_at(2, k - 1))};
        rows[k] = cubic(values, x);
      }
      return _mm256_cvttpd_epi32(cubic(rows, _mm256_set1_pd(dy)));
    });
  }

 private:
  /// Four points, and the offsets in bytes of their pixels.
  struct four_points {
    alignas(32) double dx[4], dy[4];
    alignas(16) std::int32_t offset[4];
  };

  /// Makes a line of pixels from mix(pixel_at, dx, dy), where pixel_at(i, k) is the pixel i columns and k rows away.
  /// Pixels whose neighbors up to `margin` + 1 away lie inside are made four at a time.
  template <int margin, class Mix>
  static void run(const warp_line& line, const Mix& mix) noexcept {
    const warp_source& source = line.source;
    const auto clamped = [&](const warp_point& p, std::uint8_t* to) {
      const auto pixel_at = [&](std::ptrdiff_t i, std::ptrdiff_t k) { return source.at(p.x + i, p.y + k); };
      const int four = _mm_cvtsi128_si32(bytes(mix(pixel_at, p.dx, p.dy), _mm_setzero_si128()));
      std::memcpy(to, &four, 3);
    };
    four_points points;
    std::size_t column = 0;
    for (; column + 4 <= line.width; column += 4) {
      if (!find<margin>(line, column, points)) {
        for_each_point(line, column, column + 4, clamped);
        continue;
      }
      __m128i made[4];
      for (unsigned n = 0; n < 4; ++n) {
        const std::uint8_t* const own = source.data + points.offset[n];
        const auto pixel_at = [&](std::ptrdiff_t i, std::ptrdiff_t k) { return own + (k * source.width + i) * 3; };
        made[n] = mix(pixel_at, points.dx[n], points.dy[n]);
      }
      const __m128i each_four = _mm_packus_epi16(_mm_packs_epi32(made[0], made[1]), _mm_packs_epi32(made[2], made[3]));
      const __m128i twelve =
          _mm_shuffle_epi8(each_four, _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
      alignas(16) std::uint8_t stored[16];
      _mm_store_si128(reinterpret_cast<__m128i*>(stored), twelve);
      std::memcpy(line.to + 3 * column, stored, 12);
    }
    for_each_point(line, column, line.width, clamped);
  }

  /// Returns where the sources of four points lie on one axis, less 0.5.
  static __m256d places(__m256d columns, double by_column, double row_part, double origin) noexcept {
    const __m256d sum = sum_of_product(columns, _mm256_set1_pd(by_column), _mm256_set1_pd(row_part));
    return _mm256_sub_pd(_mm256_add_pd(sum, _mm256_set1_pd(origin)), _mm256_set1_pd(0.5));
  }

  /// Returns ones where least <= at < limit.
  static __m256d between_ends(__m256d at, double least, double limit) noexcept {
    return _mm256_and_pd(_mm256_cmp_pd(at, _mm256_set1_pd(least), _CMP_GE_OQ),
                         _mm256_cmp_pd(at, _mm256_set1_pd(limit), _CMP_LT_OQ));
  }

  /// Returns whether the neighbors of all four points lie inside.
  template <int margin>
  static bool find(const warp_line& line, std::size_t column, four_points& points) noexcept {
    const affine_map& map = line.map;
    const __m256d columns =
        _mm256_add_pd(_mm256_set1_pd(static_cast<double>(column) + 0.5), _mm256_setr_pd(0, 1, 2, 3));
    const __m256d x = places(columns, map.xx, unfused(map.xy * line.middle), map.x0);
    const __m256d y = places(columns, map.yx, unfused(map.yy * line.middle), map.y0);
    const auto last_column = static_cast<double>(line.source.width - 1 - margin);
    const auto last_row = static_cast<double>(line.source.height - 1 - margin);
    const __m256d inside = _mm256_and_pd(between_ends(x, margin, last_column), between_ends(y, margin, last_row));
    if (_mm256_movemask_pd(inside) != 15) return false;
    const __m256d left = _mm256_floor_pd(x), top = _mm256_floor_pd(y);
    _mm256_store_pd(points.dx, _mm256_sub_pd(x, left));
    _mm256_store_pd(points.dy, _mm256_sub_pd(y, top));
    const __m128i rows = _mm_mullo_epi32(_mm256_cvttpd_epi32(top), _mm_set1_epi32(static_cast<int>(line.source.width)));
    const __m128i pixels = _mm_add_epi32(rows, _mm256_cvttpd_epi32(left));
    _mm_store_si128(reinterpret_cast<__m128i*>(points.offset),
                    _mm_add_epi32(pixels, _mm_add_epi32(pixels, pixels)));
    return true;
  }

  /// Returns the three channels and a byte of no meaning.
  static __m256d channels(const std::uint8_t* pixel) noexcept {
    int four;
    std::memcpy(&four, pixel, 4);
    return _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four)));
  }

  /// Returns the numbers as bytes, clamped to 0 to 255.
  static __m128i bytes(__m128i low, __m128i high) noexcept {
    const __m128i words = _mm_packs_epi32(low, high);
    return _mm_packus_epi16(words, words);
  }

  static __m256d between(__m256d a, __m256d b, __m256d d) noexcept {
    return sum_of_product(_mm256_sub_pd(b, a), d, a);
  }

  static __m256d cubic(const __m256d* v, __m256d d) noexcept {
    const __m256d slope = _mm256_sub_pd(v[2], v[0]), twice = _mm256_sub_pd(v[0], v[1]);
    const __m256d bend = _mm256_sub_pd(_mm256_add_pd(_mm256_add_pd(twice, twice), v[2]), v[3]);
    const __m256d twist = _mm256_add_pd(_mm256_sub_pd(_mm256_sub_pd(v[1], v[0]), v[2]), v[3]);
    return sum_of_product(d, sum_of_product(d, sum_of_product(d, twist, bend), slope), v[1]);
  }
};

}}}  // namespace millrace::detail

#include <millrace/image/simd/avx2_end.inc>

#endif
