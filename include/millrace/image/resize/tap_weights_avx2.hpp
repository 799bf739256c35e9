// Computes the weights of tap_table.hpp with AVX2, for eight outputs at a time. The numbers are identical to those of
// tap_table.
//
//   mr::detail::avx2_taps::build(table, axis);        // any axis; tap_table computes long filters and large sides
//
// The reciprocals are computed in doubles, and corrected so that they are the same integers as in tap_table. Errors,
// threads: see tap_table.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/resize/tap_table.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <cstddef>
#include <cstdint>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class avx2_taps {
 public:
  static void build(tap_table& table, const plan_axis& axis) {
    if (axis.filter != resize_filter::bilinear) return table.build(axis);
    tap_window t(axis);
    constexpr std::int64_t most = std::int64_t{1} << 29;   // so that sums of four fit into 32 bits
    const std::int64_t last_center = t.center + 2 * axis.length * (axis.count + at_once);
    if (t.max_taps() > taps || last_center + t.reach > most || (2 * t.end + 2 * taps) * t.step > most)
      return table.build(axis);
    table.clear();
    first_pixels first(t, axis);
    const __m256i none = _mm256_setzero_si256();
    reciprocal_cache cache{none, none, none, none};
    const __m256i counting = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i center = _mm256_add_epi32(_mm256_mullo_epi32(counting, all(2 * axis.length)), all(t.center));
    const __m256i next_centers = all(2 * axis.length * at_once);
    for (std::int64_t o = 0; o < axis.count; o += at_once, center = _mm256_add_epi32(center, next_centers)) {
      const std::int64_t outputs = axis.count - o < at_once ? axis.count - o : at_once;
      const __m256i start = first.next();
      const running_sums sums = add_up(t, center, start);
      const __m256i counted = _mm256_and_si256(sums.count, _mm256_cmpgt_epi32(all(outputs), counting));
      const auto to = table.append_few(static_cast<std::size_t>(outputs), largest(counted));
      store(to.first, start);
      store(to.count, sums.count);
      store(to.weights_at, _mm256_add_epi32(_mm256_slli_epi32(counting, 2), all(static_cast<std::int64_t>(to.used))));
      put(sums, cache, to.weights);
    }
  }

 private:
  static constexpr std::int64_t at_once = tap_table::few_outputs, taps = tap_table::padded_count;

  /// Computes the pixel of the first tap of each output, for eight outputs at a time.
  class first_pixels {
   public:
    first_pixels(const tap_window& t, const plan_axis& axis) noexcept
        : begin_(all(t.start)), last_(all(t.end - 1)), divisor_(all(2 * t.step)) {
      // The first pixel i whose (2 i + 1) * step is above the first output's center minus `reach`.
      const std::int64_t divisor = 2 * t.step, dividend = t.center - t.reach + t.step;
      const std::int64_t step = 2 * axis.length / divisor, step_rest = 2 * axis.length % divisor;
      std::int64_t pixel = dividend / divisor, rest = dividend % divisor;
      if (rest < 0) {
        --pixel;
        rest += divisor;
      }
      alignas(32) std::int32_t pixels[at_once], rests[at_once];
      for (std::size_t j = 0; j < at_once; ++j) {
        pixels[j] = static_cast<std::int32_t>(pixel);
        rests[j] = static_cast<std::int32_t>(rest);
        pixel += step;
        rest += step_rest;
        if (rest >= divisor) {
          ++pixel;
          rest -= divisor;
        }
      }
      pixel_ = load(pixels);
      rest_ = load(rests);
      advance_ = all(pixel - pixels[0] - (rest < rests[0] ? 1 : 0));
      rest_advance_ = all(rest - rests[0] + (rest < rests[0] ? divisor : 0));
    }

    __m256i next() noexcept {
      const __m256i now = _mm256_min_epi32(_mm256_max_epi32(pixel_, begin_), last_);
      const __m256i rest = _mm256_add_epi32(rest_, rest_advance_);
      const __m256i beyond = _mm256_cmpgt_epi32(rest, _mm256_sub_epi32(divisor_, _mm256_set1_epi32(1)));
      rest_ = _mm256_sub_epi32(rest, _mm256_and_si256(beyond, divisor_));
      pixel_ = _mm256_sub_epi32(_mm256_add_epi32(pixel_, advance_), beyond);
      return now;
    }

   private:
    __m256i begin_, last_, divisor_, pixel_, rest_, advance_, rest_advance_;
  };

  struct running_sums {
    __m256i upto[taps];   // running sums of raw weights
    __m256i count;        // number of weights that are not zero
  };

  static running_sums add_up(const tap_window& t, __m256i center, __m256i first) noexcept {
    const __m256i zero = _mm256_setzero_si256(), left = _mm256_sub_epi32(all(t.end), first);
    const __m256i odd = _mm256_or_si256(_mm256_slli_epi32(first, 1), _mm256_set1_epi32(1));
    __m256i from_center = _mm256_sub_epi32(_mm256_mullo_epi32(odd, all(t.step)), center);
    running_sums result{.upto = {}, .count = zero};
    __m256i sum = zero;
    for (std::int64_t k = 0; k < taps; ++k) {
      const __m256i weight = _mm256_and_si256(
          _mm256_max_epi32(_mm256_sub_epi32(all(t.reach), _mm256_abs_epi32(from_center)), zero),
          _mm256_cmpgt_epi32(left, all(k)));
      result.count = _mm256_sub_epi32(result.count, _mm256_cmpgt_epi32(weight, zero));
      result.upto[k] = sum = _mm256_add_epi32(sum, weight);
      from_center = _mm256_add_epi32(from_center, all(2 * t.step));
    }
    return result;
  }

  /// The reciprocals of the last sums. If an image is enlarged, all sums except those at its edges are equal.
  struct reciprocal_cache {
    __m256i of, even, odd, upper;

    void update(__m256i totals) noexcept {
      if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(totals, of)) == -1) return;
      of = totals;
      even = reciprocals(_mm256_and_si256(totals, _mm256_set1_epi64x(0xffff'ffff)));
      odd = reciprocals(_mm256_srli_epi64(totals, 32));
      upper = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    }
  };

  /// Writes four weights for each output.
  static void put(const running_sums& sums, reciprocal_cache& cache, std::int16_t* to) noexcept {
    cache.update(sums.upto[taps - 1]);
    const __m256i half = _mm256_set1_epi64x(std::int64_t{1} << 31);
    __m256i weights[taps], before = _mm256_setzero_si256();
    for (std::int64_t k = 0; k < taps; ++k) {
      const __m256i sum = sums.upto[k];
      const __m256i of_even = _mm256_add_epi64(_mm256_mul_epu32(sum, cache.even), half);
      const __m256i of_odd = _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(sum, 32), cache.odd), half);
      const __m256i lower = _mm256_blend_epi32(_mm256_srli_epi64(of_even, 32), of_odd, 0xaa);
      const __m256i upto = _mm256_add_epi32(lower, _mm256_mullo_epi32(sum, cache.upper));
      weights[k] = _mm256_sub_epi32(upto, before);
      before = upto;
    }
    const __m256i first_pair = _mm256_or_si256(weights[0], _mm256_slli_epi32(weights[1], 16));
    const __m256i last_pair = _mm256_or_si256(weights[2], _mm256_slli_epi32(weights[3], 16));
    const __m256i a = _mm256_unpacklo_epi32(first_pair, last_pair);   // outputs 0, 1, 4, 5
    const __m256i b = _mm256_unpackhi_epi32(first_pair, last_pair);   // outputs 2, 3, 6, 7
    store(to, _mm256_permute2x128_si256(a, b, 0x20));
    store(to + 4 * taps, _mm256_permute2x128_si256(a, b, 0x31));
  }

  static std::size_t largest(__m256i counts) noexcept {
    __m128i most = _mm_max_epi32(_mm256_castsi256_si128(counts), _mm256_extracti128_si256(counts, 1));
    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0x4e));
    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0xb1));
    return static_cast<std::size_t>(_mm_cvtsi128_si32(most));
  }

  /// Returns (2^46 + divisor / 2) / divisor, as tap_table does.
  static __m256i reciprocals(__m256i sum) noexcept {
    const __m256d divisor = doubles(sum);
    const __m256d dividend = doubles(_mm256_srli_epi64(sum, 1)) + _mm256_set1_pd(0x1p46);
    const __m256d quotient = _mm256_floor_pd(dividend / divisor);
    const __m256d rest = dividend - (quotient * divisor);
    const __m256d one = _mm256_set1_pd(1);
    const __m256d too_much = _mm256_and_pd(_mm256_cmp_pd(rest, _mm256_setzero_pd(), _CMP_LT_OQ), one);
    const __m256d too_little = _mm256_and_pd(_mm256_cmp_pd(rest, divisor, _CMP_GE_OQ), one);
    const __m256d right = (quotient + too_little) - too_much;
    return _mm256_xor_si256(_mm256_castpd_si256(right + _mm256_set1_pd(0x1p52)), exponent());
  }

  /// Converts numbers below 2^52. Such a number n is equal to the lowest bits of the double 2^52 + n.
  static __m256d doubles(__m256i numbers) noexcept {
    return _mm256_castsi256_pd(_mm256_or_si256(numbers, exponent())) - _mm256_set1_pd(0x1p52);
  }
  static __m256i exponent() noexcept { return _mm256_castpd_si256(_mm256_set1_pd(0x1p52)); }
  static __m256i all(std::int64_t value) noexcept { return _mm256_set1_epi32(static_cast<std::int32_t>(value)); }
  static __m256i load(const std::int32_t* from) noexcept {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
  }
  static void store(void* to, __m256i v) noexcept { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }
};

}}}   // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
