// Computes the inverse DCT of inverse_dct.hpp with AVX2. Each half of a register contains one of two adjacent blocks.
//
//   if (mr::detail::avx2_inverse_dct::usable())
//     tame = mr::detail::avx2_inverse_dct::pair(coefficients, q, {samples, stride_bytes});
//
// The results and the detection of wild values are identical to inverse_dct.hpp. However, the function also writes the
// samples of a wild pair. The multiply instruction adds two products. Therefore rows are interleaved and multiplied by
// pairs of factors. Rounding packs two registers of 32-bit sums into one. The packed values are interleaved for the
// second pass, which halves the transposition between the passes. Threads: pure functions; any thread.
#pragma once

#include <millrace/image/jpeg/baseline/dct_sums_avx2.hpp>
#include <millrace/image/jpeg/baseline/inverse_dct.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

#ifdef __x86_64__

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class avx2_inverse_dct {
 public:
  static bool usable() noexcept { return __builtin_cpu_supports("avx2") != 0; }

  [[gnu::target("avx2"), gnu::noinline]] static bool pair(std::int16_t* coefficients, const dequantiser& q,
                                                          sample_target to) noexcept {
    return pair<avx2_sums>(coefficients, q, to, std::make_index_sequence<8>());
  }

  /// Returns whether the same code can use AVX-512, which has twice as many registers. All values of the two passes
  /// then fit in registers.
  static bool has_more_registers() noexcept {
    return usable() && __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  }
  [[gnu::target("avx2,avx512f,avx512bw,avx512vl"), gnu::noinline]] static bool pair_in_more_registers(
      std::int16_t* coefficients, const dequantiser& q, sample_target to) noexcept {
    return pair<avx2_sums>(coefficients, q, to, std::make_index_sequence<8>());
  }

  /// Returns whether the same code can use VNNI, which multiplies and adds in one instruction. The 512-bit registers of
  /// inverse_dct_avx512.hpp are slower if the processor reduces its clock frequency for them.
  static bool has_vnni() noexcept { return has_more_registers() && __builtin_cpu_supports("avx512vnni") != 0; }
  [[gnu::target("avx2,avx512f,avx512bw,avx512vl,avx512vnni"), gnu::noinline]] static bool pair_by_vnni(
      std::int16_t* coefficients, const dequantiser& q, sample_target to) noexcept {
    return pair<vnni_sums>(coefficients, q, to, std::make_index_sequence<8>());
  }

 private:
  using words = avx2::words;
  using quads = avx2::quads;
  using octs = avx2::octs;
  using bytes = avx2::bytes;

  /// Uses fold expressions over the rows or columns `i`, because -O2 would not unroll loops and would store the arrays
  /// in memory.
  template <class Sums, std::size_t... i>
  [[gnu::target("avx2"), gnu::always_inline]] static inline bool pair(std::int16_t* coefficients,
                                                                      const dequantiser& q, sample_target to,
                                                                      std::index_sequence<i...>) noexcept {
    using namespace avx2;
    const std::int16_t* const steps = q.step.data();
    const words row[8] = {(load(coefficients + 16 * i) * load(steps + 16 * i))...};
    if (__builtin_expect(q.may_overflow, 0)) {
      words lost = words_of(0);
      ((lost |= high_products(load(coefficients + 16 * i), load(steps + 16 * i)) ^ row[i] >> 15), ...);
      if (any_of(lost, lost)) return false;
    }
    (clear(coefficients + 16 * i), ...);
    // If seven AC coefficients are below 512 and the caller has checked the DC coefficient, the column is within its
    // limit.
    words outside = (row[0] & all_but_dc()) + words_of(usual_ac);
    ((outside |= i == 0 ? words_of(0) : row[i] + words_of(usual_ac)), ...);
    if (__builtin_expect(any_of(outside, words_of(-2 * usual_ac)), 0) && !columns_are_tame(row)) return false;
    const quads half = quads_of(1 << 10);
    quads low[8], high[8];   // columns 0 to 3, and 4 to 7, of each block
    pass<Sums>(low, low_pairs(row[0], row[4]), low_pairs(row[2], row[6]), low_pairs(row[1], row[5]),
               low_pairs(row[3], row[7]), half);
    pass<Sums>(high, high_pairs(row[0], row[4]), high_pairs(row[2], row[6]), high_pairs(row[1], row[5]),
               high_pairs(row[3], row[7]), half);
    // Each register contains columns (0, 4), (1, 5), (2, 6), (3, 7) of a row.
    quads pairs[8] = {as_quads(Sums::template joined<11>(low[i], high[i]))...};
    transpose(pairs);
    transpose(pairs + 4);
    const quads center = quads_of((128 << 18) + (1 << 17));
    pass<Sums>(low, reinterpret_cast<words>(pairs[0]), reinterpret_cast<words>(pairs[2]),
               reinterpret_cast<words>(pairs[1]), reinterpret_cast<words>(pairs[3]), center);
    pass<Sums>(high, reinterpret_cast<words>(pairs[4]), reinterpret_cast<words>(pairs[6]),
               reinterpret_cast<words>(pairs[5]), reinterpret_cast<words>(pairs[7]), center);
    // Each register contains rows 0, 4, 1, 5, 2, 6, 3, 7 of both blocks.
    const words column[8] = {Sums::template joined<18>(low[i], high[i])...};
    words beyond = words_of(0);
    ((beyond |= column[i] + words_of(-least_sample - 128)), ...);
    write(column, to);
    return !any_of(beyond, words_of(least_sample - max_sample - 1));   // all bits from 1024 up are 0
  }

  [[gnu::target("avx2"), gnu::noinline]] static bool columns_are_tame(const words* row) noexcept {
    using namespace avx2;
    words sum = words_of(0);
    for (int i = 0; i < 8; ++i) sum = saturating_sum(sum, magnitudes(row[i]));
    const words wild = (sum > words_of(max_in_column)) | (sum < words_of(0));   // sums from 32768 on are negative
    return !any_of(wild, wild);
  }

  [[gnu::target("avx2"), gnu::always_inline]] static inline words all_but_dc() noexcept {
    return words{0, -1, -1, -1, -1, -1, -1, -1, 0, -1, -1, -1, -1, -1, -1, -1};
  }

  /// Computes inverse_dct_1d for each column. The arguments are its inputs, in pairs, and the rounding constant.
  template <class Sums>
  [[gnu::target("avx2"), gnu::always_inline]] static inline void pass(quads* out, words x04, words x26, words x15,
                                                                      words x37, quads rounding) noexcept {
    using namespace avx2;
    using p = dct_pair;
    const quads sum = Sums::template onto<p::sum_04>(rounding, x04);
    const quads difference = Sums::template onto<p::difference_04>(rounding, x04);
    const quads even[4] = {
        Sums::template onto<p::even_0_of_26>(sum, x26), Sums::template onto<p::even_1_of_26>(difference, x26),
        Sums::template less<p::even_1_of_26, p::minus_even_1_of_26>(difference, x26),
        Sums::template less<p::even_0_of_26, p::minus_even_0_of_26>(sum, x26)};
    const quads odd[4] = {Sums::template onto<p::odd_0_of_37>(Sums::template of<p::odd_0_of_15>(x15), x37),
                          Sums::template onto<p::odd_1_of_37>(Sums::template of<p::odd_1_of_15>(x15), x37),
                          Sums::template onto<p::odd_2_of_37>(Sums::template of<p::odd_2_of_15>(x15), x37),
                          Sums::template onto<p::odd_3_of_37>(Sums::template of<p::odd_3_of_15>(x15), x37)};
    out[0] = even[0] + odd[0];
    out[1] = even[1] + odd[1];
    out[2] = even[2] + odd[2];
    out[3] = even[3] + odd[3];
    out[4] = even[3] - odd[3];
    out[5] = even[2] - odd[2];
    out[6] = even[1] - odd[1];
    out[7] = even[0] - odd[0];
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
    write_rows(low_pairs(left_a, right_a), 0, to);
    write_rows(high_pairs(left_a, right_a), 1, to);
    write_rows(low_pairs(left_b, right_b), 2, to);
    write_rows(high_pairs(left_b, right_b), 3, to);
  }

  /// Writes rows `row` and `row` + 4. `rows` contains parts of the two blocks alternately.
  [[gnu::target("avx2"), gnu::always_inline]] static inline void write_rows(quads rows, std::size_t row,
                                                                            sample_target to) noexcept {
    const octs both = avx2::swap_middle(reinterpret_cast<octs>(rows));
    avx2::store_low(to.samples + row * to.stride_bytes, both);
    avx2::store_high(to.samples + (row + 4) * to.stride_bytes, both);
  }
};

}}}  // namespace millrace::detail

#endif
