// Computes the sources of a row's pixels with AVX2, four at a time. The values are identical to the doubles in
// warp_kernels.hpp.
//
//   mr::detail::warp_points_avx2<1> points(line);   // with one neighbor before each point on each axis, and two after
//   mr::detail::four_warp_points four;
//   for (; column + 4 <= line.end; column += 4)
//     if (points.next(four)) use(four);
//
// The object contains copies of all numbers of the row, because compilers would reload the originals after each stored
// byte.
// Errors: none. Threads: not thread-safe; one thread at a time.
#pragma once

#ifdef __x86_64__

#include <millrace/image/color/unfused_avx2.hpp>
#include <millrace/image/warp/warp_kernels.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <algorithm>
#include <cstddef>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Four points, and the byte offsets of their pixels.
struct four_warp_points {
  __m256d dx, dy;
  __m128i offset;
};

template <int margin>
class warp_points_avx2 {
 public:
  explicit warp_points_avx2(const warp_line& line) noexcept
      : x_(line.map.xx, unfused(line.map.xy * line.middle), line.map.x0, line.source.width),
        y_(line.map.yx, unfused(line.map.yy * line.middle), line.map.y0, line.source.height),
        width_(_mm_set1_epi32(static_cast<int>(line.source.width))),
        middles_(_mm256_set1_pd(static_cast<double>(line.begin)) + _mm256_setr_pd(0.5, 1.5, 2.5, 3.5)) {}

  /// Computes the next four points. Returns whether all neighbors of the four points are inside.
  bool next(four_warp_points& points) noexcept {
    const __m256d x = x_.places(middles_), y = y_.places(middles_);
    middles_ = middles_ + _mm256_set1_pd(4);
    const __m256d left = _mm256_floor_pd(x), top = _mm256_floor_pd(y);
    const __m128i column = _mm256_cvttpd_epi32(left), row = _mm256_cvttpd_epi32(top);
    const __m128i outside = _mm_or_si128(x_.outside(column), y_.outside(row));
    if (_mm_testz_si128(outside, outside) == 0) return false;
    points.dx = x - left;
    points.dy = y - top;
    const __m128i pixels = _mm_add_epi32(_mm_mullo_epi32(row, width_), column);
    points.offset = _mm_add_epi32(pixels, _mm_add_epi32(pixels, pixels));
    return true;
  }

 private:
  /// The coefficients of one axis.
  class axis {
   public:
    axis(double by_column, double row_part, double origin, std::ptrdiff_t count) noexcept
        : by_column_(_mm256_set1_pd(by_column)), row_part_(_mm256_set1_pd(row_part)), origin_(_mm256_set1_pd(origin)),
          after_(_mm_set1_epi32(static_cast<int>(std::max<std::ptrdiff_t>(count - 1 - 2 * margin, 0)))) {}

    /// Returns the positions of the sources of four points, minus 0.5.
    __m256d places(__m256d middles) const noexcept {
      const __m256d sum = sum_of_product(middles, by_column_, row_part_) + origin_;
      return sum - _mm256_set1_pd(0.5);
    }

    /// Returns ones where a neighbor is outside. Numbers are compared as unsigned. Numbers beyond 2^31 were converted
    /// to -2^31, which is outside.
    __m128i outside(__m128i place) const noexcept {
      const __m128i distance = _mm_sub_epi32(place, _mm_set1_epi32(margin));
      return _mm_cmpeq_epi32(_mm_max_epu32(distance, after_), distance);
    }

   private:
    __m256d by_column_, row_part_, origin_;
    __m128i after_;   // first position with a neighbor beyond the end, minus margin
  };

  axis x_, y_;
  __m128i width_;
  __m256d middles_;
};

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
