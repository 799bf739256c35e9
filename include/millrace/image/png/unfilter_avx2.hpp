// The filters of unfilter.hpp with AVX2: the same bytes, one pixel at a time.
//
//   mr::detail::avx2_unfilter::left<3>({.from = filtered, .above = row_before, .to = row, .bytes = 1'500});
//   mr::detail::avx2_unfilter::paeth<3, 4>(four_rows);
//
// Shapes, units, errors, threads: see unfilter.hpp.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A filtered row, the row above it, and the destination.
struct filtered_row {
  const std::uint8_t* from = nullptr;
  const std::uint8_t* above = nullptr;
  std::uint8_t* to = nullptr;
  std::size_t bytes = 0;
};

}}}  // namespace millrace::detail

#ifdef __x86_64__

#include <millrace/simd/avx2_intrinsics.hpp>

#include <cstring>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct avx2_unfilter {
  template <std::size_t pixel_bytes>
  static void left(const filtered_row& r) noexcept {
    __m128i left = _mm_setzero_si128();
    for (std::size_t x = 0; x < r.bytes; x += pixel_bytes) {
      left = _mm_add_epi8(load<pixel_bytes>(r.from + x), left);
      store<pixel_bytes>(r.to + x, left);
    }
  }

  static void above(const filtered_row& r) noexcept {
    for (std::size_t i = 0; i < r.bytes; i += 32) {
      const __m256i sums = _mm256_add_epi8(load32(r.from + i), load32(r.above + i));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(r.to + i), sums);
    }
  }

  template <std::size_t pixel_bytes>
  static void average(const filtered_row& r) noexcept {
    __m128i left = _mm_setzero_si128();
    const __m128i one = _mm_set1_epi8(1);
    for (std::size_t x = 0; x < r.bytes; x += pixel_bytes) {
      // The instruction rounds up, and the filter rounds down.
      const __m128i up = load<pixel_bytes>(r.above + x), up_of_odd = _mm_and_si128(_mm_xor_si128(left, up), one);
      const __m128i mean = _mm_sub_epi8(_mm_avg_epu8(left, up), up_of_odd);
      left = _mm_add_epi8(load<pixel_bytes>(r.from + x), mean);
      store<pixel_bytes>(r.to + x, left);
    }
  }

  /// Unfilters `rows` consecutive rows of at least `rows` pixels. The rows are processed in parallel, each row one
  /// pixel after the row above it, because the steps of a single row depend on each other.
  template <std::size_t pixel_bytes, std::size_t rows>
  static void paeth(const filtered_row* r) noexcept {
    const std::size_t pixels = r[0].bytes / pixel_bytes;
    __m128i left[rows], corner[rows];
    for (std::size_t k = 0; k < rows; ++k) left[k] = corner[k] = _mm_setzero_si128();
    // At time t, row k is at pixel t - k. The rows are processed from last to first, so that `left` of the row above is
    // still the value of the previous time, which is the pixel above.
    const auto step = [&](std::size_t k, std::size_t x) __attribute__((always_inline)) {
      const __m128i up = k == 0 ? words(r[0].above + x * pixel_bytes) : left[k - 1];
      left[k] = paeth_step(left[k], up, corner[k], words(r[k].from + x * pixel_bytes));
      store<pixel_bytes>(r[k].to + x * pixel_bytes, _mm_packus_epi16(left[k], left[k]));
      corner[k] = up;
    };
    for (std::size_t t = 0; t + 1 < rows; ++t)
      for (std::size_t k = t + 1; k-- > 0;) step(k, t - k);
    for (std::size_t t = rows - 1; t < pixels; ++t)
      for (std::size_t k = rows; k-- > 0;) step(k, t - k);
    for (std::size_t t = pixels; t < pixels + rows - 1; ++t)
      for (std::size_t k = rows; k-- > t - pixels + 1;) step(k, t - k);
  }

 private:
  /// Returns the bytes of a pixel, as words, from its neighbors and its filtered bytes, by the rule of
  /// portable_unfilter. `filtered` is added to each possible prediction, so that the selection is the last step.
  static __m128i paeth_step(__m128i left, __m128i up, __m128i corner, __m128i filtered) noexcept {
    const __m128i triple = _mm_add_epi16(_mm_add_epi16(corner, corner), corner);
    const __m128i threshold = _mm_sub_epi16(_mm_sub_epi16(triple, up), left);
    const __m128i low = _mm_min_epi16(left, up), high = _mm_max_epi16(left, up);
    const __m128i by_low = _mm_add_epi8(low, filtered), by_high = _mm_add_epi8(high, filtered);
    const __m128i by_corner = _mm_add_epi8(corner, filtered);
    const __m128i not_high = _mm_blendv_epi8(by_low, by_corner, _mm_cmpgt_epi16(high, threshold));
    return _mm_blendv_epi8(by_high, not_high, _mm_cmpgt_epi16(threshold, low));
  }

  static __m128i words(const std::uint8_t* from) noexcept {
    return _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  }

  static __m256i load32(const std::uint8_t* from) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }

  /// Loads 4 or 8 bytes.
  template <std::size_t pixel_bytes>
  static __m128i load(const std::uint8_t* from) noexcept {
    if constexpr (pixel_bytes > 4) return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    int four;
    std::memcpy(&four, from, sizeof four);
    return _mm_cvtsi32_si128(four);
  }
  /// Stores 4 or 8 bytes. The next pixel overwrites the excess bytes.
  template <std::size_t pixel_bytes>
  static void store(std::uint8_t* to, __m128i v) noexcept {
    if constexpr (pixel_bytes > 4) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(to), v);
    } else {
      const int four = _mm_cvtsi128_si32(v);
      std::memcpy(to, &four, sizeof four);
    }
  }
};

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
