// Mixes bytes with their neighbors along one axis, in float, and tells which results may be wrong.
//
//   mr::detail::portable_axis_taps::widen(bytes, 600, numbers);
//   const std::size_t count = mr::detail::portable_axis_taps::mix<true>(row, doubtful);   // cubic
//   for (std::size_t i = 0; i < count; ++i) make_again(doubtful[i]);
//
// Results are truncated. So only those close to a whole number may come out otherwise in double. Where all neighbors
// are equal, the result is exact.
// Units: bytes of a row, three for each pixel. Errors: none. Threads: pure, except for what is written.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// How far numbers in float may be off. Differences are whole numbers below 256. Weights are off by 2^-25, products by
/// 2^-17, and each of up to three sums below 512 by 2^-16.
inline constexpr float axis_tap_error = 0x1p-12F;

/// Bytes to mix: each with the one before it on the axis and the two behind it. A linear mix takes the next one only.
/// Up to 15 numbers are read behind the last ones.
struct axis_tap_row {
  static constexpr std::size_t fewest_weights = 8;

  const float *before = nullptr, *own = nullptr, *next = nullptr, *last = nullptr;
  /// The own weight is what is missing to 1.
  const float *before_weights = nullptr, *next_weights = nullptr, *last_weights = nullptr;
  std::size_t weight_mask = ~std::size_t{0};   ///< byte i has weight i & weight_mask; fewest_weights - 1: all are alike
  float error = axis_tap_error;   ///< below 0 where numbers are exact
  std::size_t count = 0;
  std::uint8_t* to = nullptr;
};

struct portable_axis_taps {
  /// Makes numbers of bytes. Up to 7 bytes are read and 7 numbers written behind the last ones.
  static void widen(const std::uint8_t* bytes, std::size_t count, float* to) noexcept {
    for (std::size_t i = 0; i < count; ++i) to[i] = bytes[i];
  }

  /// Writes the mixed bytes, and the numbers of those that may be wrong, in order. Returns how many these are.
  template <bool cubic>
  static std::size_t mix(const axis_tap_row& row, std::uint32_t* doubtful) noexcept {
    std::size_t found = 0;
    for (std::size_t i = 0; i < row.count; ++i) {
      const std::size_t w = i & row.weight_mask;
      const float own = row.own[i], next = row.next[i] - own;
      const float before = cubic ? row.before[i] - own : 0, last = cubic ? row.last[i] - own : 0;
      float made = own + next * row.next_weights[w];
      if (cubic) made += before * row.before_weights[w] + last * row.last_weights[w];
      row.to[i] = static_cast<std::uint8_t>(std::clamp(static_cast<int>(made), 0, 255));
      // Negative numbers count as close, too.
      const bool close = made - static_cast<float>(static_cast<int>(made + row.error)) <= row.error;
      if (close && !(next == 0 && before == 0 && last == 0)) doubtful[found++] = static_cast<std::uint32_t>(i);
    }
    return found;
  }
};

}}}  // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
