// Computes the weights of tap_table.hpp with AVX2, for eight outputs at a time. The numbers are identical to those of
// tap_table. Supports only the bilinear filter with at most 4 taps per output, and positions up to 2^29 in the units of
// tap_window.
//
//   mr::detail::avx2::tap_weights::build(table, axis);   // any axis; calls table.build(axis) if it is not supported
//
// The reciprocals of the sums of weights are computed in doubles, and then corrected to the same integers as in
// tap_table. Errors, threads: see tap_table.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/resize/tap_table.hpp>
#include <millrace/simd/words.hpp>

#include <cstddef>
#include <cstdint>

#include <millrace/simd/layer_begin.inc>

class tap_weights {
 public:
  static void build(tap_table& table, const plan_axis& axis) {
    if (axis.filter != resize_filter::bilinear) return table.build(axis);
    tap_window t(axis);
    constexpr std::int64_t most = std::int64_t{1} << 29;   // so that the sum of four weights fits into 32 bits
    const std::int64_t last_center = t.center + 2 * axis.length * (axis.count + at_once);
    if (t.max_taps() > taps || last_center + t.reach > most || (2 * t.end + 2 * taps) * t.step > most)
      return table.build(axis);
    table.clear();
    first_pixels first(t, axis);
    reciprocal_cache cache{};
    constexpr quads counting{0, 1, 2, 3, 4, 5, 6, 7};
    const quads next_centers = all(2 * axis.length * at_once);
    quads center = counting * all(2 * axis.length) + all(t.center);
    for (std::int64_t o = 0; o < axis.count; o += at_once, center += next_centers) {
      const std::int64_t outputs = axis.count - o < at_once ? axis.count - o : at_once;
      const quads start = first.next();
      const running_sums sums = add_up(t, center, start);
      const auto to = table.append_few(static_cast<std::size_t>(outputs),
                                       largest(sums.count & (all(outputs) > counting)));
      store(to.first, start);
      store(to.count, sums.count);
      store(to.weights_at, (counting << 2) + all(static_cast<std::int64_t>(to.used)));
      put(sums, cache, to.weights);
    }
  }

 private:
  using octs [[gnu::vector_size(32)]] = unsigned long long;
  using doubles [[gnu::vector_size(32)]] = double;

  static constexpr std::int64_t at_once = tap_table::few_outputs, taps = tap_table::padded_count;

  /// Computes the pixel of the first tap of each output, for eight outputs at a time.
  class first_pixels {
   public:
    first_pixels(const tap_window& t, const plan_axis& axis) noexcept
        : begin_(all(t.start)), last_(all(t.end - 1)), divisor_(all(2 * t.step)), largest_rest_(divisor_ - 1) {
      // Output j begins with the first pixel i whose position (2 i + 1) * step is above the output's center minus
      // `reach`.
      const std::int64_t divisor = 2 * t.step;
      std::int32_t pixels[at_once + 1], rests[at_once + 1];
      for (std::int64_t j = 0; j <= at_once; ++j) {
        const std::int64_t dividend = t.center - t.reach + t.step + 2 * axis.length * j;
        const std::int64_t pixel = dividend / divisor - (dividend % divisor < 0 ? 1 : 0);
        pixels[j] = static_cast<std::int32_t>(pixel);
        rests[j] = static_cast<std::int32_t>(dividend - pixel * divisor);
      }
      pixel_ = load_quads(pixels);
      rest_ = load_quads(rests);
      const bool carries = rests[at_once] < rests[0];
      advance_ = all(pixels[at_once] - pixels[0] - (carries ? 1 : 0));
      rest_advance_ = all(rests[at_once] - rests[0] + (carries ? divisor : 0));
    }

    quads next() noexcept {
      const quads now = lesser(greater(pixel_, begin_), last_), rest = rest_ + rest_advance_;
      const quads beyond = rest > largest_rest_;
      rest_ = rest - (beyond & divisor_);
      pixel_ += advance_ - beyond;
      return now;
    }

   private:
    quads begin_, last_, divisor_, largest_rest_, pixel_, rest_, advance_, rest_advance_;
  };

  struct running_sums {
    quads upto[taps];   // running sums of raw weights
    quads count;        // number of weights that are not zero
  };

  static running_sums add_up(const tap_window& t, quads center, quads first) noexcept {
    const quads left = all(t.end) - first;
    quads from_center = (first + first + 1) * all(t.step) - center, sum{};
    running_sums result{};
    for (std::int64_t k = 0; k < taps; ++k, from_center += all(2 * t.step)) {
      const quads distance = (quads)_mm256_abs_epi32((__m256i)from_center);
      const quads weight = greater(all(t.reach) - distance, quads{}) & (left > all(k));
      result.count -= weight > 0;
      result.upto[k] = sum += weight;
    }
    return result;
  }

  /// The reciprocals of the sums of weights in the previous call. If an image is enlarged, all sums except those at its
  /// edges are equal.
  struct reciprocal_cache {
    quads of;
    octs even, odd;
    quads upper;

    void update(quads totals) noexcept {
      if (_mm256_movemask_epi8((__m256i)(totals == of)) == -1) return;
      of = totals;
      even = reciprocals((octs)totals & 0xffff'ffff);
      odd = reciprocals((octs)totals >> 32);
      upper = even_and_odd(even >> 32, odd);
    }
  };

  /// Writes four weights for each output.
  static void put(const running_sums& sums, reciprocal_cache& cache, std::int16_t* to) noexcept {
    cache.update(sums.upto[taps - 1]);
    constexpr std::uint64_t half = std::uint64_t{1} << 31;
    quads weights[taps], before{};
    for (std::int64_t k = 0; k < taps; ++k) {
      const quads sum = sums.upto[k];
      const octs of_even = products((octs)sum, cache.even) + half;
      const octs of_odd = products((octs)sum >> 32, cache.odd) + half;
      const quads upto = even_and_odd(of_even >> 32, of_odd) + sum * cache.upper;
      weights[k] = upto - before;
      before = upto;
    }
    const quads first_pair = weights[0] | weights[1] << 16, last_pair = weights[2] | weights[3] << 16;
    const quads a = low_pairs(first_pair, last_pair);    // outputs 0, 1, 4, 5
    const quads b = high_pairs(first_pair, last_pair);   // outputs 2, 3, 6, 7
    store(to, (quads)_mm256_permute2x128_si256((__m256i)a, (__m256i)b, 0x20));
    store(to + 4 * taps, (quads)_mm256_permute2x128_si256((__m256i)a, (__m256i)b, 0x31));
  }

  static std::size_t largest(quads counts) noexcept {
    __m128i most = _mm_max_epi32(_mm256_castsi256_si128((__m256i)counts), _mm256_extracti128_si256((__m256i)counts, 1));
    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0x4e));
    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0xb1));
    return static_cast<std::size_t>(_mm_cvtsi128_si32(most));
  }

  /// Returns (2^46 + sum / 2) / sum in integers, as tap_table does.
  static octs reciprocals(octs sum) noexcept {
    const doubles divisor = to_doubles(sum), dividend = to_doubles(sum >> 1) + 0x1p46;
    const doubles quotient = _mm256_floor_pd(dividend / divisor), rest = dividend - (quotient * divisor);
    const doubles zero{}, one = zero + 1;
    const doubles right = (quotient + (rest >= divisor ? one : zero)) - (rest < zero ? one : zero);
    return (octs)(right + 0x1p52) ^ exponent();
  }

  /// Converts numbers below 2^52. Such a number n is equal to the lowest bits of the double 2^52 + n.
  static doubles to_doubles(octs numbers) noexcept { return (doubles)(numbers | exponent()) - 0x1p52; }
  static octs exponent() noexcept { return (octs)(doubles{} + 0x1p52); }

  static quads all(std::int64_t value) noexcept { return quads_of(static_cast<int>(value)); }
  /// Multiplies the lower 32 bits of each element of `a` and `b`, as unsigned numbers.
  static octs products(octs a, octs b) noexcept { return (octs)_mm256_mul_epu32((__m256i)a, (__m256i)b); }
  static quads even_and_odd(octs even, octs odd) noexcept {
    return (quads)_mm256_blend_epi32((__m256i)even, (__m256i)odd, 0xaa);
  }
};

#include <millrace/simd/layer_end.inc>

#endif
