// Computes the inverse DCT of two neighboring blocks to 4 x 4, 2 x 2 or 1 x 1 samples each, with libjpeg's results.
//
//   const mr::detail::dequantiser q(component.quantiser);           // in zigzag order
//   bool tame = mr::detail::reduced_dct::four(pair, q, to);         // writes 8 columns of 4 rows
//   // or reduced_dct::two(pair, q, to): 4 columns of 2 rows
//   // or reduced_dct::one(pair, q, to): 2 columns of 1 row, from the DC terms alone
//
// Apart from rounding and clamping, a sample is the mean of the samples that it replaces. The functions return false
// for wild (too large) values, as in inverse_dct.hpp. libjpeg must decode such an image. `one` never returns false,
// because the caller checks the DC term.
// Threads: pure functions; any thread.
// Source: libjpeg's jidctred.c, with the same fixed-point numbers.
#pragma once

#include <millrace/image/jpeg/baseline/inverse_dct.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Products of cosines and sqrt(2), without factors that are powers of two. The numbers have 13 fraction bits.
struct reduced_factors {
  static constexpr int four_even_2 = 15137, four_even_6 = -6270, four_outer_1 = 20995, four_outer_3 = 7373,
                       four_outer_5 = -4926, four_outer_7 = -4176, four_inner_1 = 8697, four_inner_3 = -17799,
                       four_inner_5 = 11893, four_inner_7 = -1730, two_1 = 29692, two_3 = -10426, two_5 = 6967,
                       two_7 = -5906;
};

class reduced_dct {
 public:
  static bool four(std::int16_t* pair, const dequantiser& q, sample_target to) noexcept { return both<4>(pair, q, to); }
  static bool two(std::int16_t* pair, const dequantiser& q, sample_target to) noexcept { return both<2>(pair, q, to); }
  static bool one(std::int16_t* pair, const dequantiser& q, sample_target to) noexcept {
    to.samples[0] = mean(pair[0] * q.step[0]);
    to.samples[1] = mean(pair[right_block] * q.step[0]);
    clear_pair(pair);
    return true;
  }

  /// Returns the single sample of a block with this dequantized DC term.
  static std::uint8_t mean(int dc) noexcept { return static_cast<std::uint8_t>(std::clamp((dc + 1'028) >> 3, 0, 255)); }

 private:
  template <std::size_t size>
  static bool both(std::int16_t* pair, const dequantiser& q, sample_target to) noexcept {
    const bool tame = block<size>(pair, q.step.data(), to) &&
                      block<size>(pair + right_block, q.step.data() + right_block,
                                  {to.samples + size, to.stride_bytes});
    clear_pair(pair);
    return tame;
  }

  /// Transforms one block. If a value is wild, writes nothing and returns false.
  template <std::size_t size>
  static bool block(const std::int16_t* coefficients, const std::int16_t* steps, sample_target to) noexcept {
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

  /// Computes one pass. Returns sums that are not yet rounded, with 14 fraction bits for four samples and 15 for two.
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
