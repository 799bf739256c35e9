// Computes the inverse DCT of inverse_dct.hpp with AVX-512. Each quarter of a register contains one of four adjacent
// blocks.
//
//   if (mr::detail::avx512_inverse_dct::usable())
//     result = mr::detail::avx512_inverse_dct::quad(coefficients, q, {samples, stride_bytes});
//
// `coefficients` are two consecutive pairs of blocks; the function writes 32 columns of 8 rows. The results are
// identical to transforming each pair separately. The method is the same as in inverse_dct_body.inc. Threads: pure
// functions; any thread.
#pragma once

#include <millrace/image/jpeg/baseline/inverse_dct.hpp>
#include <millrace/simd/avx512_words.hpp>
#include <millrace/simd/cpu_features.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The outcome for two pairs of blocks: `tame` and `wild` as in inverse_dct.hpp. `untouched` means that the caller must
/// transform each pair separately.
enum class quad_result : std::uint8_t { tame, wild, untouched };

#ifdef __x86_64__

/// Identifies the pair of factors for the inputs x and y of a sum.
enum class dct_pair : std::size_t {
  sum_04, difference_04,
  even_0_of_26, even_1_of_26, minus_even_0_of_26, minus_even_1_of_26,
  odd_0_of_15, odd_0_of_37, odd_1_of_15, odd_1_of_37, odd_2_of_15, odd_2_of_37, odd_3_of_15, odd_3_of_37
};

/// Each factor is one 16-bit word. All factors are in one cache line, from which the processor can broadcast a pair
/// directly.
alignas(64) inline constexpr std::array<std::array<std::int16_t, 2>, 14> dct_pairs = {{
    {dct_factors::one, dct_factors::one}, {dct_factors::one, -dct_factors::one},
    {dct_factors::even_2_2, dct_factors::even_2_6}, {dct_factors::even_2_6, dct_factors::even_6_6},
    {-dct_factors::even_2_2, -dct_factors::even_2_6}, {-dct_factors::even_2_6, -dct_factors::even_6_6},
    {dct_factors::odd_1_1, dct_factors::odd_1_5}, {dct_factors::odd_1_3, dct_factors::odd_1_7},
    {dct_factors::odd_1_3, dct_factors::odd_3_5}, {dct_factors::odd_3_3, dct_factors::odd_3_7},
    {dct_factors::odd_1_5, dct_factors::odd_5_5}, {dct_factors::odd_3_5, dct_factors::odd_1_3},
    {dct_factors::odd_1_7, dct_factors::odd_1_3}, {dct_factors::odd_3_7, dct_factors::odd_7_7}}};

class avx512_inverse_dct {
 public:
  /// Returns whether transforming four blocks at once is faster on this processor.
  static bool usable() noexcept { return cpu_has_wide_vectors(); }

  [[gnu::target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni"), gnu::noinline]] static quad_result quad(
      std::int16_t* coefficients, const dequantiser& q, sample_target to) noexcept {
    return quad(coefficients, q, to, std::make_index_sequence<8>());
  }

 private:
  using words = avx512::words;
  using quads = avx512::quads;
  using octs = avx512::octs;
  using bytes = avx512::bytes;

#define MILLRACE_AVX512 [[gnu::target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni"), gnu::always_inline]] inline

  /// Uses fold expressions over the rows or columns `i`, because -O2 would not unroll loops and would store the arrays
  /// in memory.
  template <std::size_t... i>
  MILLRACE_AVX512 static quad_result quad(std::int16_t* coefficients, const dequantiser& q, sample_target to,
                                          std::index_sequence<i...>) noexcept {
    using namespace avx512;
    if (__builtin_expect(q.may_overflow, 0)) return quad_result::untouched;
    std::int16_t* const second = coefficients + pair_coefficients;
    const std::int16_t* const steps = q.step.data();
    const words row[8] = {(load_two(coefficients + 16 * i, second + 16 * i) *
                           load_two(steps + 16 * i, steps + 16 * i))...};
    // The same check as in the function for one pair. Columns that require a precise check are rare.
    words outside = (row[0] & all_but_dc()) + words_of(usual_ac);
    ((outside |= i == 0 ? words_of(0) : row[i] + words_of(usual_ac)), ...);
    if (__builtin_expect(any_of(outside, words_of(-2 * usual_ac)), 0)) return quad_result::untouched;
    ((avx2::block_rows{coefficients}.clear(i), avx2::block_rows{second}.clear(i)), ...);
    const quads half = quads_of(1 << 10);
    quads low[8], high[8];   // columns 0 to 3, and 4 to 7, of each block
    pass(low, low_pairs(row[0], row[4]), low_pairs(row[2], row[6]), low_pairs(row[1], row[5]),
         low_pairs(row[3], row[7]), half);
    pass(high, high_pairs(row[0], row[4]), high_pairs(row[2], row[6]), high_pairs(row[1], row[5]),
         high_pairs(row[3], row[7]), half);
    quads pairs[8] = {as_quads(joined<11>(low[i], high[i]))...};
    transpose(pairs);
    transpose(pairs + 4);
    const quads center = quads_of((128 << 18) + (1 << 17));
    pass(low, reinterpret_cast<words>(pairs[0]), reinterpret_cast<words>(pairs[2]), reinterpret_cast<words>(pairs[1]),
         reinterpret_cast<words>(pairs[3]), center);
    pass(high, reinterpret_cast<words>(pairs[4]), reinterpret_cast<words>(pairs[6]), reinterpret_cast<words>(pairs[5]),
         reinterpret_cast<words>(pairs[7]), center);
    // Each register contains rows 0, 4, 1, 5, 2, 6, 3, 7 of the four blocks.
    const words column[8] = {joined<18>(low[i], high[i])...};
    words beyond = words_of(0);
    ((beyond |= column[i] + words_of(-least_sample - 128)), ...);
    write(column, to);
    // All bits from 1024 up must be 0.
    return any_of(beyond, words_of(least_sample - max_sample - 1)) ? quad_result::wild : quad_result::tame;
  }

  MILLRACE_AVX512 static words all_but_dc() noexcept {
    return words{0, -1, -1, -1, -1, -1, -1, -1, 0, -1, -1, -1, -1, -1, -1, -1,
                 0, -1, -1, -1, -1, -1, -1, -1, 0, -1, -1, -1, -1, -1, -1, -1};
  }

  template <dct_pair p>
  MILLRACE_AVX512 static quads onto(quads sum, words xy) noexcept {
    return avx512::add_products(sum, xy, dct_pairs[static_cast<std::size_t>(p)]);
  }

  /// Computes inverse_dct_1d for each column. The arguments are its inputs, in pairs, and the rounding constant.
  MILLRACE_AVX512 static void pass(quads* out, words x04, words x26, words x15, words x37, quads rounding) noexcept {
    using p = dct_pair;
    const quads none = avx512::quads_of(0);
    const quads sum = onto<p::sum_04>(rounding, x04), difference = onto<p::difference_04>(rounding, x04);
    const quads even[4] = {onto<p::even_0_of_26>(sum, x26), onto<p::even_1_of_26>(difference, x26),
                           onto<p::minus_even_1_of_26>(difference, x26), onto<p::minus_even_0_of_26>(sum, x26)};
    const quads odd[4] = {onto<p::odd_0_of_37>(onto<p::odd_0_of_15>(none, x15), x37),
                          onto<p::odd_1_of_37>(onto<p::odd_1_of_15>(none, x15), x37),
                          onto<p::odd_2_of_37>(onto<p::odd_2_of_15>(none, x15), x37),
                          onto<p::odd_3_of_37>(onto<p::odd_3_of_15>(none, x15), x37)};
    out[0] = even[0] + odd[0];
    out[1] = even[1] + odd[1];
    out[2] = even[2] + odd[2];
    out[3] = even[3] + odd[3];
    out[4] = even[3] - odd[3];
    out[5] = even[2] - odd[2];
    out[6] = even[1] - odd[1];
    out[7] = even[0] - odd[0];
  }

  MILLRACE_AVX512 static void write(const words* column, sample_target to) noexcept {
    using namespace avx512;
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

  /// Writes rows `row` and `row` + 4. `rows` contains these two rows alternately, block by block.
  MILLRACE_AVX512 static void write_rows(quads rows, std::size_t row, sample_target to) noexcept {
    const octs both = avx512::even_then_odd(reinterpret_cast<octs>(rows));
    avx512::store_low(to.samples + row * to.stride_bytes, both);
    avx512::store_high(to.samples + (row + 4) * to.stride_bytes, both);
  }

#undef MILLRACE_AVX512
};

#endif

}}}  // namespace millrace::detail
