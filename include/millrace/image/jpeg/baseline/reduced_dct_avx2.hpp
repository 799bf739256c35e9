// Computes the inverse DCTs of reduced_dct.hpp with AVX2. Each half of a register contains one of two adjacent blocks.
//
//   if (mr::detail::avx2_inverse_dct::usable())                     // inverse_dct_avx2.hpp
//     tame = mr::detail::avx2_reduced_dct::four(coefficients, q, {samples, stride_bytes});
//
// The results and the detection of wild values are identical to reduced_dct.hpp. However, the functions also write the
// samples of a wild pair. inverse_dct_avx2.hpp describes how sums are computed and packed. Between the passes, columns
// are ordered as (0, 4), (1, 5), (2, 6), (3, 7), so the second pass multiplies the same pairs as the first. Threads:
// pure functions; any thread.
#pragma once

#include <millrace/image/jpeg/baseline/reduced_dct.hpp>
#include <millrace/simd/avx2_words.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#ifdef __x86_64__

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class avx2_reduced_dct {
  using words = avx2::words;
  using quads = avx2::quads;
  using rows_of_four = std::index_sequence<0, 1, 2, 3, 5, 6, 7>;   // the rows that are used
  using rows_of_two = std::index_sequence<0, 1, 3, 5, 7>;
  using f = reduced_factors;

 public:
  [[gnu::target("avx2"), gnu::noinline]] static bool four(std::int16_t* coefficients, const dequantiser& q,
                                                          sample_target to) noexcept {
    using namespace avx2;
    words row[8];
    if (!read(coefficients, q, row, rows_of_four())) return false;
    quads low[4], high[4];   // columns 0 to 3, and 4 to 7, of each block
    pass_of_four(low, low_pairs(row[0], row[0]), low_pairs(row[2], row[6]), low_pairs(row[1], row[5]),
                 low_pairs(row[3], row[7]), 1 << 11);
    pass_of_four(high, high_pairs(row[0], row[0]), high_pairs(row[2], row[6]), high_pairs(row[1], row[5]),
                 high_pairs(row[3], row[7]), 1 << 11);
    quads pairs[4] = {as_quads(joined<12>(low[0], high[0])), as_quads(joined<12>(low[1], high[1])),
                      as_quads(joined<12>(low[2], high[2])), as_quads(joined<12>(low[3], high[3]))};
    transpose(pairs);
    quads column[4];
    pass_of_four(column, reinterpret_cast<words>(pairs[0]), reinterpret_cast<words>(pairs[2]),
                 reinterpret_cast<words>(pairs[1]), reinterpret_cast<words>(pairs[3]), (128 << 19) + (1 << 18));
    const words left = joined<19>(column[0], column[1]), right = joined<19>(column[2], column[3]);
    const auto samples = reinterpret_cast<quads>(
        clamped_bytes(reinterpret_cast<words>(low_pairs(as_quads(left), as_quads(right))),
                      reinterpret_cast<words>(high_pairs(as_quads(left), as_quads(right)))));
    const octs rows = as_octs(interleave_halves(samples));
    store(rows[0], to, 0);
    store(rows[1], to, 1);
    store(rows[2], to, 2);
    store(rows[3], to, 3);
    return !any_of((left + words_of(-least_sample - 128)) | (right + words_of(-least_sample - 128)),
                   words_of(least_sample - max_sample - 1));   // all bits from 1024 up are 0
  }

  [[gnu::target("avx2"), gnu::noinline]] static bool two(std::int16_t* coefficients, const dequantiser& q,
                                                         sample_target to) noexcept {
    using namespace avx2;
    words row[8];
    if (!read(coefficients, q, row, rows_of_two())) return false;
    quads low[2], high[2];
    pass_of_two(low, low_pairs(row[0], row[0]), low_pairs(row[1], row[3]), low_pairs(row[5], row[7]));
    pass_of_two(high, high_pairs(row[0], row[0]), high_pairs(row[1], row[3]), high_pairs(row[5], row[7]));
    const words by_column = {1 << 14, 0, f::two_1, f::two_5, 0, 0, f::two_3, f::two_7,
                             1 << 14, 0, f::two_1, f::two_5, 0, 0, f::two_3, f::two_7};
    const quads top = multiply_pairs(joined<13>(low[0], high[0]), by_column);
    const quads bottom = multiply_pairs(joined<13>(low[1], high[1]), by_column);
    // First half of the DC terms of both rows, then the odd parts of both rows.
    const quads parts = low_pairs(top, bottom) + high_pairs(top, bottom);
    const quads center = __builtin_shufflevector(parts, parts, 0, 0, 1, 1, 4, 4, 5, 5);
    const quads odd = __builtin_shufflevector(parts, parts, 2, 2, 3, 3, 6, 6, 7, 7);
    const quads sign = {0, -1, 0, -1, 0, -1, 0, -1};
    const quads sums = center + center + ((odd ^ sign) - sign) + ((128 << 20) + (1 << 19));
    const words samples = packed(sums >> 20, sums >> 20);
    const auto both = reinterpret_cast<quads>(clamped_bytes(samples, samples));
    const auto left = static_cast<std::uint32_t>(both[0]), right = static_cast<std::uint32_t>(both[4]);
    const std::uint32_t rows[2] = {(left & 0xffff) | right << 16, left >> 16 | (right & 0xffff0000)};
    std::memcpy(to.samples, rows, 4);
    std::memcpy(to.samples + to.stride_bytes, rows + 1, 4);
    return !any_of(samples + words_of(-least_sample - 128), words_of(least_sample - max_sample - 1));
  }

 private:
  /// Writes the dequantized rows to `row`. Returns false if a column is wild.
  template <std::size_t... r>
  [[gnu::target("avx2"), gnu::always_inline]] static inline bool read(std::int16_t* coefficients,
                                                                      const dequantiser& q, words* row,
                                                                      std::index_sequence<r...> rows) noexcept {
    using namespace avx2;
    const std::int16_t* const steps = q.step.data();
    ((row[r] = load(coefficients + 16 * r) * load(steps + 16 * r)), ...);
    if (__builtin_expect(q.may_overflow, 0)) {
      words lost = words_of(0);
      ((lost |= high_products(load(coefficients + 16 * r), load(steps + 16 * r)) ^ row[r] >> 15), ...);
      if (any_of(lost, lost)) return false;
    }
    clear_all(coefficients);
    // If the AC coefficients are below 512 and the caller has checked the DC coefficient, the column is within its
    // limit.
    const words all_but_dc = {0, -1, -1, -1, -1, -1, -1, -1, 0, -1, -1, -1, -1, -1, -1, -1};
    words outside = (row[0] & all_but_dc) + words_of(usual_ac);
    ((outside |= r == 0 ? words_of(0) : row[r] + words_of(usual_ac)), ...);
    return __builtin_expect(!any_of(outside, words_of(-2 * usual_ac)), 1) || columns_are_tame(row, rows);
  }

  [[gnu::target("avx2"), gnu::always_inline]] static inline void clear_all(std::int16_t* coefficients) noexcept {
    for (std::size_t row = 0; row < 8; ++row) avx2::clear(coefficients + 16 * row);
  }

  template <std::size_t... r>
  [[gnu::target("avx2"), gnu::noinline]] static bool columns_are_tame(const words* row,
                                                                      std::index_sequence<r...>) noexcept {
    using namespace avx2;
    words sum = words_of(0);
    ((sum = saturating_sum(sum, magnitudes(row[r]))), ...);
    const words wild = (sum > words_of(max_in_column)) | (sum < words_of(0));   // sums from 32768 on are negative
    return !any_of(wild, wild);
  }

  [[gnu::target("avx2"), gnu::always_inline]] static inline void pass_of_four(quads* out, words x0, words x26,
                                                                              words x15, words x37,
                                                                              int rounding) noexcept {
    using namespace avx2;
    const quads center = multiply_pairs(x0, pair_of(1 << 14, 0)) + rounding;
    const quads even = multiply_pairs(x26, pair_of(f::four_even_2, f::four_even_6));
    const quads outer = multiply_pairs(x15, pair_of(f::four_outer_1, f::four_outer_5)) +
                        multiply_pairs(x37, pair_of(f::four_outer_3, f::four_outer_7));
    const quads inner = multiply_pairs(x15, pair_of(f::four_inner_1, f::four_inner_5)) +
                        multiply_pairs(x37, pair_of(f::four_inner_3, f::four_inner_7));
    out[0] = center + even + outer;
    out[1] = center - even + inner;
    out[2] = center - even - inner;
    out[3] = center + even - outer;
  }

  [[gnu::target("avx2"), gnu::always_inline]] static inline void pass_of_two(quads* out, words x0, words x13,
                                                                             words x57) noexcept {
    using namespace avx2;
    const quads center = multiply_pairs(x0, pair_of(1 << 14, 1 << 14)) + (1 << 12);
    const quads odd = multiply_pairs(x13, pair_of(f::two_1, f::two_3)) +
                      multiply_pairs(x57, pair_of(f::two_5, f::two_7));
    out[0] = center + odd;
    out[1] = center - odd;
  }

  [[gnu::target("avx2"), gnu::always_inline]] static inline void store(long long samples, sample_target to,
                                                                       std::size_t row) noexcept {
    std::memcpy(to.samples + row * to.stride_bytes, &samples, 8);
  }
};

}}}  // namespace millrace::detail

#endif
