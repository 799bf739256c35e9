// Interpolates bytes along one axis in float, and reports which results may differ from a computation in double.
//
//   mr::detail::portable_axis_taps::widen(bytes, 600, numbers);
//   const std::size_t count = mr::detail::portable_axis_taps::mix<true>(row, doubtful);   // cubic
//   for (std::size_t i = 0; i < count; ++i) recompute(doubtful[i]);
//
// Results are truncated. Therefore only results that are close to an integer may differ from results in double. If a
// byte and its neighbors are equal, the result is exact.
// Units: bytes of a row, three for each pixel. Errors: none. Threads: any thread, if no two calls share an output.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The maximum error in float: the errors of weights, products and sums, rounded up.
inline constexpr float axis_tap_error = 0x1p-12F;

/// Bytes to interpolate: each byte (`own`), the byte before it on the axis, and the two bytes after it. A linear
/// interpolation uses only `own` and `next`. Up to 15 numbers beyond the end of each array may be read.
struct axis_tap_row {
  static constexpr std::size_t fewest_weights = 8;

  const float *before = nullptr, *own = nullptr, *next = nullptr, *last = nullptr;
  /// Weights of the neighbors; the byte's own weight is 1 minus their sum.
  const float *before_weights = nullptr, *next_weights = nullptr, *last_weights = nullptr;
  /// Byte i uses the weight with the index i & weight_mask. If all weights are equal, only fewest_weights of them are
  /// stored, and the mask is fewest_weights - 1.
  std::size_t weight_mask = ~std::size_t{0};
  float error = axis_tap_error;   ///< maximum error of a result; negative if results are exact
  std::size_t count = 0;
  std::uint8_t* to = nullptr;
};

struct portable_axis_taps {
  /// Converts bytes to numbers. Beyond `count`, up to 7 bytes may be read and up to 7 numbers written.
  static void widen(const std::uint8_t* bytes, std::size_t count, float* to) noexcept {
    for (std::size_t i = 0; i < count; ++i) to[i] = bytes[i];
  }

  /// Writes the interpolated bytes, and the indices of bytes that may be wrong, in ascending order. Returns the number
  /// of indices.
  template <bool cubic>
  static std::size_t mix(const axis_tap_row& row, std::uint32_t* doubtful) noexcept {
    std::size_t count = 0;
    for (std::size_t i = 0; i < row.count; ++i) {
      const std::size_t w = i & row.weight_mask;
      const float own = row.own[i], next = row.next[i] - own;
      const float before = cubic ? row.before[i] - own : 0, last = cubic ? row.last[i] - own : 0;
      float value = own + next * row.next_weights[w];
      if (cubic) value += before * row.before_weights[w] + last * row.last_weights[w];
      row.to[i] = static_cast<std::uint8_t>(std::clamp(static_cast<int>(value), 0, 255));
      // Negative values also count as close to an integer.
      const bool close = value - static_cast<float>(static_cast<int>(value + row.error)) <= row.error;
      if (close && !(next == 0 && before == 0 && last == 0)) doubtful[count++] = static_cast<std::uint32_t>(i);
    }
    return count;
  }
};

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
