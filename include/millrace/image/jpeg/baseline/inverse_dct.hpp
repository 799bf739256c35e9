// Computes the inverse DCT of two neighboring blocks in plain integers, with the same results as libjpeg's "islow". A
// block has 8 x 8 samples, or fewer with reduced_dct.
//
//   const mr::detail::dequantiser q(component.quantiser);                              // in zigzag order
//   bool tame = mr::detail::inverse_dct_pair(pair, q, {samples, stride_bytes});        // writes 16 columns of 8 rows
//   tame = mr::detail::reduced_dct::four(pair, q, {samples, stride_bytes});            // writes 8 columns of 4 rows
//
// block_stream.hpp defines the layout of `pair`. Each function sets the pair to zero, because block_stream requires
// zeros for the next blocks. A function returns false if a value is "wild": so large that the results of
// implementations differ. The samples are then undefined. Real images have no wild values. A value is wild in two
// cases:
// - The sum of the magnitudes of a column's dequantized coefficients exceeds `max_in_column`. The first pass might then
//   overflow 16 bits.
// - A sample is outside -512 .. 511 before clamping. Such values wrap around in libjpeg's C code, but not in its SIMD
//   code.
// Threads: pure functions; any thread. Source: C. Loeffler, A. Ligtenberg and G. Moschytz, ICASSP 1989. As in libjpeg's
// accurate integer method, factors have 13 fraction bits. Results of the first pass have 2 fraction bits.
#pragma once

#include <millrace/image/jpeg/baseline/block_stream.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

enum : int { max_in_column = 5'000, largest_dc_term = 1'200, usual_ac = 512, least_sample = -512, max_sample = 511 };

/// The step sizes of a quantizer in the layout of a pair's coefficients: each row of eight occurs twice.
struct dequantiser {
  alignas(32) std::array<std::int16_t, 128> step{};
  int largest_dc = 0;          // a quantized DC value is wild if its magnitude is above this limit
  bool may_overflow = false;   // whether dequantization of a 10-bit AC coefficient can overflow 16 bits

  dequantiser() = default;
  explicit dequantiser(const std::uint8_t* zigzag) noexcept {
    int largest = 0;
    for (std::size_t k = 0; k < 64; ++k) {
      const std::size_t at = coefficient_order[k];
      step[at] = step[at + right_block] = zigzag[k];
      largest = std::max<int>(largest, zigzag[k]);
    }
    largest_dc = largest_dc_term / std::max<int>(1, zigzag[0]);
    may_overflow = largest * ((1 << largest_ac_size) - 1) > 32'767;
  }
};

struct dct_target {
  std::uint8_t* samples;
  std::size_t stride_bytes;
};

/// Factors with 13 fraction bits.
struct dct_factors {
  static constexpr int one = 8192, even_2_2 = 10703, even_2_6 = 4433, even_6_6 = -10704, odd_1_1 = 11363,
                       odd_1_3 = 9633, odd_1_5 = 6437, odd_1_7 = 2260, odd_3_3 = -2259, odd_3_7 = -6436,
                       odd_3_5 = -11362, odd_7_7 = -11363, odd_5_5 = 2261;
};

/// Computes one pass over eight numbers. Returns sums with 13 fraction bits, not yet rounded.
MILLRACE_ALWAYS_INLINE inline std::array<int, 8> inverse_dct_1d(const std::array<int, 8>& x) noexcept {
  using f = dct_factors;
  const int sum = (x[0] + x[4]) * f::one, difference = (x[0] - x[4]) * f::one;
  const int a = x[2] * f::even_2_2 + x[6] * f::even_2_6, b = x[2] * f::even_2_6 + x[6] * f::even_6_6;
  const int even[4] = {sum + a, difference + b, difference - b, sum - a};
  const int odd[4] = {x[1] * f::odd_1_1 + x[3] * f::odd_1_3 + x[5] * f::odd_1_5 + x[7] * f::odd_1_7,
                      x[1] * f::odd_1_3 + x[3] * f::odd_3_3 + x[5] * f::odd_3_5 + x[7] * f::odd_3_7,
                      x[1] * f::odd_1_5 + x[3] * f::odd_3_5 + x[5] * f::odd_5_5 + x[7] * f::odd_1_3,
                      x[1] * f::odd_1_7 + x[3] * f::odd_3_7 + x[5] * f::odd_1_3 + x[7] * f::odd_7_7};
  return {even[0] + odd[0], even[1] + odd[1], even[2] + odd[2], even[3] + odd[3],
          even[3] - odd[3], even[2] - odd[2], even[1] - odd[1], even[0] - odd[0]};
}

/// Transforms one block of a pair. If a value is wild, writes nothing and returns false.
inline bool inverse_dct_block(const std::int16_t* block, const std::int16_t* steps, dct_target to) noexcept {
  std::array<std::array<int, 8>, 8> columns;   // results of the first pass, for each column
  for (std::size_t c = 0; c < 8; ++c) {
    std::array<int, 8> x;
    int sum = 0;
    for (std::size_t r = 0; r < 8; ++r) {
      x[r] = block[16 * r + c] * steps[16 * r + c];
      sum += std::abs(x[r]);
    }
    if (sum > max_in_column) return false;
    if (sum == std::abs(x[0])) {
      columns[c].fill(x[0] * 4);
      continue;
    }
    columns[c] = inverse_dct_1d(x);
    for (int& value : columns[c]) value = (value + (1 << 10)) >> 11;
  }
  std::array<std::array<int, 8>, 8> rows;
  for (std::size_t r = 0; r < 8; ++r) {
    std::array<int, 8> x;
    for (std::size_t c = 0; c < 8; ++c) x[c] = columns[c][r];
    rows[r] = inverse_dct_1d(x);
    for (int& value : rows[r]) {
      value = (value + (1 << 17)) >> 18;
      if (value < least_sample || value > max_sample) return false;
    }
  }
  for (std::size_t r = 0; r < 8; ++r)
    for (std::size_t c = 0; c < 8; ++c)
      to.samples[r * to.stride_bytes + c] = static_cast<std::uint8_t>(std::clamp(rows[r][c] + 128, 0, 255));
  return true;
}

inline void clear_pair(std::int16_t* pair) noexcept { std::fill_n(pair, 2 * 64, std::int16_t{0}); }

inline bool inverse_dct_pair(std::int16_t* pair, const dequantiser& q, dct_target to) noexcept {
  const bool tame = inverse_dct_block(pair, q.step.data(), to) &&
                    inverse_dct_block(pair + right_block, q.step.data() + right_block,
                                      {to.samples + 8, to.stride_bytes});
  clear_pair(pair);
  return tame;
}

/// Products of cosines and sqrt(2), without factors that are powers of two. The numbers have 13 fraction bits.
struct reduced_factors {
  static constexpr int four_even_2 = 15137, four_even_6 = -6270, four_outer_1 = 20995, four_outer_3 = 7373,
                       four_outer_5 = -4926, four_outer_7 = -4176, four_inner_1 = 8697, four_inner_3 = -17799,
                       four_inner_5 = 11893, four_inner_7 = -1730, two_1 = 29692, two_3 = -10426, two_5 = 6967,
                       two_7 = -5906;
};

/// Inverse DCTs to 4 x 4, 2 x 2 or 1 x 1 samples of each block. Apart from rounding and clamping, a sample is the mean
/// of the samples that it replaces. `one` never returns false, because the caller checks the DC term.
/// Source: libjpeg's jidctred.c, with the same fixed-point numbers.
class reduced_dct {
 public:
  static bool four(std::int16_t* pair, const dequantiser& q, dct_target to) noexcept { return both<4>(pair, q, to); }
  static bool two(std::int16_t* pair, const dequantiser& q, dct_target to) noexcept { return both<2>(pair, q, to); }
  static bool one(std::int16_t* pair, const dequantiser& q, dct_target to) noexcept {
    to.samples[0] = mean(pair[0] * q.step[0]);
    to.samples[1] = mean(pair[right_block] * q.step[0]);
    clear_pair(pair);
    return true;
  }

  /// Returns the single sample of a block with this dequantized DC term.
  static std::uint8_t mean(int dc) noexcept { return static_cast<std::uint8_t>(std::clamp((dc + 1'028) >> 3, 0, 255)); }

 private:
  template <std::size_t size>
  static bool both(std::int16_t* pair, const dequantiser& q, dct_target to) noexcept {
    const bool tame = block<size>(pair, q.step.data(), to) &&
                      block<size>(pair + right_block, q.step.data() + right_block,
                                  {to.samples + size, to.stride_bytes});
    clear_pair(pair);
    return tame;
  }

  /// Transforms one block. If a value is wild, writes nothing and returns false.
  template <std::size_t size>
  static bool block(const std::int16_t* coefficients, const std::int16_t* steps, dct_target to) noexcept {
    constexpr int fraction = size == 4 ? 14 : 15;
    std::array<std::array<int, 8>, size> lines;
    for (std::size_t c = 0; c < 8; ++c) {
      std::array<int, 8> x{};
      int sum = 0;
      for (std::size_t r = 0; r < 8; ++r) {
        if (is_unused<size>(r)) continue;
        x[r] = coefficients[16 * r + c] * steps[16 * r + c];
        sum += std::abs(x[r]);
      }
      if (sum > max_in_column) return false;
      const auto column = pass<size>(x);
      for (std::size_t r = 0; r < size; ++r) lines[r][c] = (column[r] + (1 << (fraction - 3))) >> (fraction - 2);
    }
    std::array<std::array<int, size>, size> samples;
    for (std::size_t r = 0; r < size; ++r) {
      samples[r] = pass<size>(lines[r]);
      for (int& value : samples[r]) {
        value = (value + (1 << (fraction + 4))) >> (fraction + 5);
        if (value < least_sample || value > max_sample) return false;
      }
    }
    for (std::size_t r = 0; r < size; ++r)
      for (std::size_t c = 0; c < size; ++c)
        to.samples[r * to.stride_bytes + c] = static_cast<std::uint8_t>(std::clamp(samples[r][c] + 128, 0, 255));
    return true;
  }

  template <std::size_t size>
  static constexpr bool is_unused(std::size_t frequency) noexcept {
    return size == 4 ? frequency == 4 : frequency == 2 || frequency == 4 || frequency == 6;
  }

  /// Computes one pass. Returns sums that are not yet rounded. They have 14 fraction bits if `size` is 4, and 15 if it
  /// is 2.
  template <std::size_t size>
  static std::array<int, size> pass(const std::array<int, 8>& x) noexcept {
    using f = reduced_factors;
    if constexpr (size == 4) {
      const int center = x[0] << 14, even = x[2] * f::four_even_2 + x[6] * f::four_even_6;
      const int outer = x[1] * f::four_outer_1 + x[3] * f::four_outer_3 + x[5] * f::four_outer_5 +
                        x[7] * f::four_outer_7;
      const int inner = x[1] * f::four_inner_1 + x[3] * f::four_inner_3 + x[5] * f::four_inner_5 +
                        x[7] * f::four_inner_7;
      return {center + even + outer, center - even + inner, center - even - inner, center + even - outer};
    } else {
      const int center = x[0] << 15;
      const int odd = x[1] * f::two_1 + x[3] * f::two_3 + x[5] * f::two_5 + x[7] * f::two_7;
      return {center + odd, center - odd};
    }
  }
};

}}}   // namespace millrace::detail
