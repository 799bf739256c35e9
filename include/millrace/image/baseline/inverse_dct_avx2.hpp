// The inverse DCT of inverse_dct.hpp with AVX2: two blocks side by side, one in each half of a register.
//
//   if (detail::avx2_inverse_dct::usable()) tame = detail::avx2_inverse_dct::pair(coefficients, q, {samples, stride});
//
// The same results and the same answer to what is wild; a wild pair has samples written nonetheless. Products are sums
// of two: interleaved rows with pairs of factors. Rounding puts two registers of 32-bit sums together so that they are
// interleaved for the second pass, which halves the transposition between the passes. Threads: pure.
#pragma once

#include <millrace/image/baseline/avx2_words.hpp>
#include <millrace/image/baseline/inverse_dct.hpp>

#include <cstddef>
#include <cstdint>

#ifdef __x86_64__

namespace millrace::inline MILLRACE_ABI::detail {

class avx2_inverse_dct {
 public:
  static bool usable() noexcept { return __builtin_cpu_supports("avx2") != 0; }

  [[gnu::target("avx2"), gnu::noinline]] static bool pair(const std::int16_t* coefficients, const dequantiser& q,
                                                          sample_target to) noexcept {
    using namespace avx2;
    words row[8], wild = words_of(0);
    dequantise(row, wild, coefficients, q);
    quads low[8], high[8];   // of columns 0 to 3 and 4 to 7 of each block
    const words none = words_of(0);
    pass(low, low_pairs(row[0], row[4]), low_pairs(row[2], row[6]), low_pairs(row[1], row[5]),
         low_pairs(row[3], row[7]), 1 << 10);
    pass(high, high_pairs(row[0], row[4]), high_pairs(row[2], row[6]), high_pairs(row[1], row[5]),
         high_pairs(row[3], row[7]), 1 << 10);
    quads pairs[8];   // columns (0, 4), (1, 5), (2, 6), (3, 7) of a row
    for (int i = 0; i < 8; ++i)
      pairs[i] = reinterpret_cast<quads>(alternate(reinterpret_cast<words>(low[i] >> 11),
                                                   reinterpret_cast<words>(high[i] << 5)));
    transpose(pairs);
    transpose(pairs + 4);
    // 128 and the rounding half in the scale of the DC term, to which they are added: 4112 * 8192 = 128.5 * 2^18.
    const words centre = pair_of(128 * 32 + 16, 0);
    pass(low, reinterpret_cast<words>(pairs[0]) + centre, reinterpret_cast<words>(pairs[2]),
         reinterpret_cast<words>(pairs[1]), reinterpret_cast<words>(pairs[3]), 0);
    pass(high, reinterpret_cast<words>(pairs[4]) + centre, reinterpret_cast<words>(pairs[6]),
         reinterpret_cast<words>(pairs[5]), reinterpret_cast<words>(pairs[7]), 0);
    words column[8], lowest = words_of(0), highest = none;   // rows 0, 4, 1, 5, 2, 6, 3, 7 of both blocks
    for (int i = 0; i < 8; ++i) {
      column[i] = alternate(reinterpret_cast<words>(low[i] >> 18), reinterpret_cast<words>(high[i] >> 2));
      lowest = least(lowest, column[i]);
      highest = most(highest, column[i]);
    }
    wild |= (lowest < words_of(least_sample + 128)) | (highest > words_of(most_sample + 128));
    write(column, to);
    return !any(wild);
  }

 private:
  using words = avx2::words;
  using quads = avx2::quads;
  using octs = avx2::octs;

  [[gnu::target("avx2"), gnu::always_inline]] static inline void dequantise(words* row, words& wild,
                                                                            const std::int16_t* coefficients,
                                                                            const dequantiser& q) noexcept {
    using namespace avx2;
    words sum = words_of(0);
    for (int i = 0; i < 8; ++i) {
      row[i] = load(coefficients + 16 * i) * load(q.step.data() + 16 * i);
      sum = saturating_sum(sum, magnitudes(row[i]));
    }
    wild = (sum > words_of(most_in_column)) | (sum < words_of(0));   // from 32768 on they look negative
    if (!q.may_overflow) return;
    for (int i = 0; i < 8; ++i)
      wild |= high_products(load(coefficients + 16 * i), load(q.step.data() + 16 * i)) != row[i] >> 15;
  }

  /// inverse_dct_1d of each column; the arguments are its inputs, two by two.
  [[gnu::target("avx2"), gnu::always_inline]] static inline void pass(quads* out, words x04, words x26, words x15,
                                                                      words x37, int rounding) noexcept {
    using namespace avx2;
    using f = dct_factors;
    const quads sum = multiply_pairs(x04, pair_of(f::one, f::one)) + rounding;
    const quads difference = multiply_pairs(x04, pair_of(f::one, -f::one)) + rounding;
    const quads a = multiply_pairs(x26, pair_of(f::even_2_2, f::even_2_6));
    const quads b = multiply_pairs(x26, pair_of(f::even_2_6, f::even_6_6));
    const quads even[4] = {sum + a, difference + b, difference - b, sum - a};
    const quads odd[4] = {
        multiply_pairs(x15, pair_of(f::odd_1_1, f::odd_1_5)) + multiply_pairs(x37, pair_of(f::odd_1_3, f::odd_1_7)),
        multiply_pairs(x15, pair_of(f::odd_1_3, f::odd_3_5)) + multiply_pairs(x37, pair_of(f::odd_3_3, f::odd_3_7)),
        multiply_pairs(x15, pair_of(f::odd_1_5, f::odd_5_5)) + multiply_pairs(x37, pair_of(f::odd_3_5, f::odd_1_3)),
        multiply_pairs(x15, pair_of(f::odd_1_7, f::odd_1_3)) + multiply_pairs(x37, pair_of(f::odd_3_7, f::odd_7_7))};
    for (int i = 0; i < 4; ++i) {
      out[i] = even[i] + odd[i];
      out[7 - i] = even[i] - odd[i];
    }
  }

  /// Of four rows in each half: q[c] becomes column pair c, one row after the other.
  [[gnu::target("avx2"), gnu::always_inline]] static inline void transpose(quads* q) noexcept {
    using namespace avx2;
    const auto a = reinterpret_cast<octs>(low_pairs(q[0], q[1])), b = reinterpret_cast<octs>(high_pairs(q[0], q[1]));
    const auto c = reinterpret_cast<octs>(low_pairs(q[2], q[3])), d = reinterpret_cast<octs>(high_pairs(q[2], q[3]));
    q[0] = reinterpret_cast<quads>(low_pairs(a, c));
    q[1] = reinterpret_cast<quads>(high_pairs(a, c));
    q[2] = reinterpret_cast<quads>(low_pairs(b, d));
    q[3] = reinterpret_cast<quads>(high_pairs(b, d));
  }

  [[gnu::target("avx2"), gnu::always_inline]] static inline void write(const words* column, sample_target to) noexcept {
    using namespace avx2;
    const bytes c04 = clamped_bytes(column[0], column[4]), c15 = clamped_bytes(column[1], column[5]);
    const bytes c26 = clamped_bytes(column[2], column[6]), c37 = clamped_bytes(column[3], column[7]);
    const bytes c02 = low_pairs(c04, c26), c46 = high_pairs(c04, c26);
    const bytes c13 = low_pairs(c15, c37), c57 = high_pairs(c15, c37);
    const auto left_a = reinterpret_cast<quads>(low_pairs(c02, c13));     // columns 0 to 3 of rows 0, 4, 1, 5
    const auto left_b = reinterpret_cast<quads>(high_pairs(c02, c13));    // ... 2, 6, 3, 7
    const auto right_a = reinterpret_cast<quads>(low_pairs(c46, c57)), right_b = reinterpret_cast<quads>(
        high_pairs(c46, c57));
    const quads rows[4] = {low_pairs(left_a, right_a), high_pairs(left_a, right_a), low_pairs(left_b, right_b),
                           high_pairs(left_b, right_b)};                  // rows i and i + 4 of both blocks
    for (std::size_t i = 0; i < 4; ++i) {
      const octs both = swap_middle(reinterpret_cast<octs>(rows[i]));
      store_low(to.samples + i * to.stride_bytes, both);
      store_high(to.samples + (i + 4) * to.stride_bytes, both);
    }
  }
};

}  // namespace millrace::inline MILLRACE_ABI::detail

#endif
