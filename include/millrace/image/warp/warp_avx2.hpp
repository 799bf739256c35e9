// The kernels of warp.hpp with AVX2: the same bytes, four pixels at a time.
//
//   mr::detail::warp<mr::detail::avx2_warping> w;
//   if (mr::detail::cpu_has_avx2()) w.run(pixels, map, mr::detail::warp_filter::bilinear, {0, 0, 0});
//
// Channel values are first computed in float. Values are truncated, so only values close to an integer may differ from
// a computation in double. Pixels with such a value are recomputed in double, unless all neighbors are equal.
// Errors, threads: see warp.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/color/unfused_avx2.hpp>
#include <millrace/image/warp/axis_taps_avx2.hpp>
#include <millrace/image/warp/warp.hpp>
#include <millrace/image/warp/warp_points_avx2.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct avx2_warping {
  using along_axis = avx2_axis_taps;

  static void bilinear(const warp_line& line) noexcept { run<linear_mix>(line); }
  static void bicubic(const warp_line& line) noexcept { run<cubic_mix>(line); }

 private:
  /// Converts the first eight bytes to floats.
  static __m256 floats_of(__m128i bytes) noexcept { return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)); }

  /// Concatenates `low` and `high` in each 128-bit half, and returns four numbers, beginning at number `first`.
  template <int first>
  static __m256 from_lane(__m256 high, __m256 low) noexcept {
    return _mm256_castsi256_ps(_mm256_alignr_epi8(_mm256_castps_si256(high), _mm256_castps_si256(low), 4 * first));
  }

  /// Interpolates 2 x 2 pixels: in double, exactly as Pillow does, and in float.
  struct linear_mix {
    static constexpr int margin = 0, neighbors = 2;   // neighbors per axis; the first `margin` precede the pixel
    static constexpr bool equals_stay = true;         // interpolating equal numbers in float returns that number
    static constexpr float error = 0x1p-14F;          // each of the two float steps has an error below 2^-15

    static __m256d mixed(const __m256d* v, __m256d d) noexcept {
      return sum_of_product(v[1] - v[0], d, v[0]);
    }

    /// The fractions of four points, in float.
    class in_float {
     public:
      in_float(__m128 dx, __m128 dy) noexcept : dx_(dx), dy_(dy) {}

      /// Returns the values at points 2 * pair and 2 * pair + 1, whose pixels are `first` and `second`.
      __m256 mixed(int pair, const std::uint8_t* first, const std::uint8_t* second,
                   std::ptrdiff_t row_bytes) const noexcept {
        const __m256 dy = of_pair(dy_, pair);
        __m256 columns[2];
        const __m128i above = eight_of(first, second), below = eight_of(first + row_bytes, second + row_bytes);
        const __m256 a = floats_of(above), b = floats_of(below);
        const __m256 c = floats_of(_mm_unpackhi_epi64(above, above)), d = floats_of(_mm_unpackhi_epi64(below, below));
        columns[0] = _mm256_fmadd_ps(b - a, dy, a);
        columns[1] = from_lane<3>(_mm256_fmadd_ps(d - c, dy, c), columns[0]);
        return _mm256_fmadd_ps(columns[1] - columns[0], of_pair(dx_, pair), columns[0]);
      }

     private:
      static __m256 of_pair(__m128 d, int pair) noexcept {
        const __m128 two = pair == 0 ? _mm_unpacklo_ps(d, d) : _mm_unpackhi_ps(d, d);
        const __m256d wide = _mm256_castps_pd(_mm256_castps128_ps256(two));
        return _mm256_castpd_ps(_mm256_permute4x64_pd(wide, 0x50));
      }
      static __m128i eight_of(const std::uint8_t* first, const std::uint8_t* second) noexcept {
        return _mm_unpacklo_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(first)),
                                  _mm_loadl_epi64(reinterpret_cast<const __m128i*>(second)));
      }

      __m128 dx_, dy_;
    };
  };

  /// Interpolates 4 x 4 pixels.
  struct cubic_mix {
    static constexpr int margin = 1, neighbors = 4;
    static constexpr bool equals_stay = false;
    /// The total error of the weights of an axis is 2^-20. The error of sums over columns is 2^-11.7. The error of sums
    /// of these sums is 2^-10, because the weights multiply an error by at most 1.5.
    static constexpr float error = 0x1p-9F;

    static __m256d mixed(const __m256d* v, __m256d d) noexcept {
      const __m256d slope = v[2] - v[0], twice = v[0] - v[1];
      const __m256d bend = ((twice + twice) + v[2]) - v[3];
      const __m256d twist = ((v[1] - v[0]) - v[2]) + v[3];
      return sum_of_product(d, sum_of_product(d, sum_of_product(d, twist, bend), slope), v[1]);
    }

    /// The weights of four points, in float.
    class in_float {
     public:
      in_float(__m128 dx, __m128 dy) noexcept {
        const __m256 d = _mm256_insertf128_ps(_mm256_castps128_ps256(dx), dy, 1), square = d * d;
        const __m256 one = _mm256_set1_ps(1);
        const __m256 last = square * (d - one), next = d - last;
        const __m256 before = square - (d + last);
        const __m256 own = (one - square) + last;
        const __m256 a = _mm256_unpacklo_ps(before, own), b = _mm256_unpackhi_ps(before, own);
        const __m256 c = _mm256_unpacklo_ps(next, last), e = _mm256_unpackhi_ps(next, last);
        of_point_[0] = _mm256_shuffle_ps(a, c, 0x44);
        of_point_[1] = _mm256_shuffle_ps(a, c, 0xee);
        of_point_[2] = _mm256_shuffle_ps(b, e, 0x44);
        of_point_[3] = _mm256_shuffle_ps(b, e, 0xee);
      }

      __m256 mixed(int pair, const std::uint8_t* first, const std::uint8_t* second,
                   std::ptrdiff_t row_bytes) const noexcept {
        const __m256 p = of_point_[2 * pair], q = of_point_[2 * pair + 1];
        const __m256 x = _mm256_permute2f128_ps(p, q, 0x20), y = _mm256_permute2f128_ps(p, q, 0x31);
        // Each half of a, b and c contains four of the twelve channel values of four neighbors: one half per point.
        __m256 a = _mm256_setzero_ps(), b = a, c = a;
        add_row(first - row_bytes - 3, second - row_bytes - 3, _mm256_permute_ps(y, 0x00), a, b, c);
        add_row(first - 3, second - 3, _mm256_permute_ps(y, 0x55), a, b, c);
        add_row(first + row_bytes - 3, second + row_bytes - 3, _mm256_permute_ps(y, 0xaa), a, b, c);
        add_row(first + 2 * row_bytes - 3, second + 2 * row_bytes - 3, _mm256_permute_ps(y, 0xff), a, b, c);
        a = a * _mm256_permute_ps(x, 0x40);   // weights 0 0 0 1
        b = b * _mm256_permute_ps(x, 0xa5);   // 1 1 2 2
        c = c * _mm256_permute_ps(x, 0xfe);   // 2 3 3 3
        return (a + from_lane<3>(b, a)) + (from_lane<2>(c, b) + from_lane<1>(c, c));
      }

     private:
      static void add_row(const std::uint8_t* first, const std::uint8_t* second, __m256 weight, __m256& a, __m256& b,
                          __m256& c) noexcept {
        const __m128i p = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first));
        const __m128i q = _mm_loadu_si128(reinterpret_cast<const __m128i*>(second));
        const __m128i low = _mm_unpacklo_epi32(p, q);
        a = _mm256_fmadd_ps(floats_of(low), weight, a);
        b = _mm256_fmadd_ps(floats_of(_mm_unpackhi_epi64(low, low)), weight, b);
        c = _mm256_fmadd_ps(floats_of(_mm_unpackhi_epi32(p, q)), weight, c);
      }

      __m256 of_point_[4];   // four weights for x, then four for y
    };
  };

  /// Computes a pixel in double. Returns three values and an unused one. pixel_at(i, k) returns the pixel i columns and
  /// k rows away.
  template <class Mix, class PixelAt>
  static __m128i in_double(const PixelAt& pixel_at, double dx, double dy) noexcept {
    __m256d rows[Mix::neighbors];
    for (int k = 0; k < Mix::neighbors; ++k) {
      __m256d values[Mix::neighbors];
      for (int i = 0; i < Mix::neighbors; ++i) values[i] = channels(pixel_at(i - Mix::margin, k - Mix::margin));
      rows[k] = Mix::mixed(values, _mm256_set1_pd(dx));
    }
    return _mm256_cvttpd_epi32(Mix::mixed(rows, _mm256_set1_pd(dy)));
  }

  /// Returns a bit mask of the channel values of two pixels that are close to an integer.
  static int close_to_integer(__m256 v, float error) noexcept {
    const __m256 rest = v - _mm256_floor_ps(v + _mm256_set1_ps(error));
    return _mm256_movemask_ps(_mm256_cmp_ps(rest, _mm256_set1_ps(error), _CMP_LE_OQ)) & 0x77;
  }

  /// Returns a bit mask of the channels that differ between the neighbors.
  template <class Mix>
  static int differing_channels(const std::uint8_t* own, std::ptrdiff_t row_bytes) noexcept {
    const auto pixel = [&](int i, int k) {
      std::uint32_t four;
      std::memcpy(&four, own + (k - Mix::margin) * row_bytes + 3 * (i - Mix::margin), 4);
      return four;
    };
    std::uint32_t different = 0;
    for (int k = 0; k < Mix::neighbors; ++k)
      for (int i = 0; i < Mix::neighbors; ++i) different |= pixel(i, k) ^ pixel(0, 0);
    return ((different & 0xff) != 0 ? 1 : 0) | ((different & 0xff00) != 0 ? 2 : 0) |
           ((different & 0xff0000) != 0 ? 4 : 0);
  }

  /// Computes the pixels of a line, four at a time where all neighbors of the four are inside.
  template <class Mix>
  static void run(const warp_line& line) noexcept {
    const warp_source source = line.source;
    const auto clamped = [&](const warp_point& p, std::uint8_t* to) {
      const auto pixel_at = [&](std::ptrdiff_t i, std::ptrdiff_t k) { return source.at(p.x + i, p.y + k); };
      put_pixel(in_double<Mix>(pixel_at, p.dx, p.dy), to);
    };
    warp_points_avx2<Mix::margin> points(line);
    four_warp_points four;
    std::size_t column = line.begin;
    for (; column + 4 <= line.end; column += 4)
      if (points.next(four)) make_four<Mix>(source, four, line.to + 3 * column);
      else for_each_point(line, column, column + 4, clamped);
    for_each_point(line, column, line.end, clamped);
  }

  template <class Mix>
  static void make_four(warp_source source, const four_warp_points& points, std::uint8_t* to) noexcept {
    const std::ptrdiff_t row_bytes = 3 * source.width;
    const typename Mix::in_float four(_mm256_cvtpd_ps(points.dx), _mm256_cvtpd_ps(points.dy));
    const auto own = [&](int offset) { return source.data + offset; };
    const __m256 first_two = four.mixed(0, own(_mm_extract_epi32(points.offset, 0)),
                                        own(_mm_extract_epi32(points.offset, 1)), row_bytes);
    const __m256 last_two = four.mixed(1, own(_mm_extract_epi32(points.offset, 2)),
                                       own(_mm_extract_epi32(points.offset, 3)), row_bytes);
    const __m256i words = _mm256_packs_epi32(_mm256_cvttps_epi32(first_two), _mm256_cvttps_epi32(last_two));
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    const __m128i twelve =
        _mm_shuffle_epi8(bytes, _mm_setr_epi8(0, 1, 2, 8, 9, 10, 4, 5, 6, 12, 13, 14, -1, -1, -1, -1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), twelve);
    const int last_four = _mm_extract_epi32(twelve, 2);
    std::memcpy(to + 8, &last_four, 4);
    const int close = close_to_integer(first_two, Mix::error) | close_to_integer(last_two, Mix::error) << 8;
    if (close != 0) [[unlikely]] recompute<Mix>(source, points, close, to);
  }

  /// Recomputes the pixels that have values close to integers; `close` contains four bits per pixel.
  template <class Mix>
  [[gnu::noinline]] static void recompute(warp_source source, four_warp_points points, int close,
                                           std::uint8_t* to) noexcept {
    const std::ptrdiff_t row_bytes = 3 * source.width;
    alignas(32) double dx[4], dy[4];
    alignas(16) std::int32_t offset[4];
    _mm256_store_pd(dx, points.dx);
    _mm256_store_pd(dy, points.dy);
    _mm_store_si128(reinterpret_cast<__m128i*>(offset), points.offset);
    for (int n = 0; close != 0; ++n, close >>= 4, to += 3) {
      if ((close & 7) == 0) continue;
      const std::uint8_t* const own = source.data + offset[n];
      if ((close & differing_channels<Mix>(own, row_bytes)) == 0) {   // all neighbors are equal
        if constexpr (!Mix::equals_stay)
          for (int c = 0; c < 3; ++c) to[c] = (close >> c & 1) != 0 ? own[c] : to[c];
        continue;
      }
      const auto pixel_at = [&](std::ptrdiff_t i, std::ptrdiff_t k) { return own + k * row_bytes + 3 * i; };
      put_pixel(in_double<Mix>(pixel_at, dx[n], dy[n]), to);
    }
  }

  static void put_pixel(__m128i numbers, std::uint8_t* to) noexcept {
    const __m128i words = _mm_packs_epi32(numbers, numbers);
    const int four = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    std::memcpy(to, &four, 3);
  }

  static __m128i word(const std::uint8_t* pixel) noexcept {
    int four;
    std::memcpy(&four, pixel, 4);
    return _mm_cvtsi32_si128(four);
  }

  /// Returns the three channels and an unused value.
  static __m256d channels(const std::uint8_t* pixel) noexcept {
    return _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(word(pixel)));
  }
};

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
