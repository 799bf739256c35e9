// Keys' cubic with a = -0.5, the weights of a bicubic resize, in integers: identical with every compiler and flag.
//
//   const mr::detail::cubic_kernel cubic(1'000);      // 1,000 units of distance are one pixel
//   cubic.weight(0);                                  // 2^31, which represents 1
//   cubic.weight(1'500);                              // -2^27, which represents -0.0625
//
// With x = distance / one pixel, a weight is 1.5 x^3 - 2.5 x^2 + 1 for x < 1, else -0.5 (x - 1) (x - 2)^2.
// x has 18 fraction bits and is exact if the distance is an integer number of pixels. Therefore a resize to the same
// size changes nothing.
// Errors: none. Threads: not synchronized. Source: R. G. Keys, Cubic Convolution Interpolation for Digital Image
// Processing, IEEE Transactions on Acoustics, Speech and Signal Processing, 1981. Pillow's Resample.c has the same a.
#pragma once

#include <millrace/base/version.hpp>

#include <bit>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class cubic_kernel {
 public:
  /// Builds the kernel for distances in units of 1 / `pixel` pixels; 1 <= pixel < 2^39.
  explicit constexpr cubic_kernel(std::int64_t pixel) noexcept
      : shift_(40 - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(pixel)))),
        reciprocal_(static_cast<std::uint64_t>((wide{1} << 102) / (static_cast<std::uint64_t>(pixel) << shift_)) + 1) {}

  /// Returns the weight; 2^31 represents 1. `distance` is at least 0 and below two pixels.
  constexpr std::int64_t weight(std::int64_t distance) const noexcept {
    constexpr std::int64_t one = std::int64_t{1} << fraction_bits;
    const auto x = static_cast<std::int64_t>(
        (wide{static_cast<std::uint64_t>(distance) << shift_} * reciprocal_) >> (102 - fraction_bits));
    // Twice the weight, with three times the fraction bits of x.
    const std::int64_t twice = x < one ? (3 * x - 5 * one) * x * x + 2 * one * one * one
                                       : (one - x) * (2 * one - x) * (2 * one - x);
    return twice >> (3 * fraction_bits - 30);
  }

 private:
  __extension__ typedef unsigned __int128 wide;
  static constexpr int fraction_bits = 18;

  int shift_;
  std::uint64_t reciprocal_;   // a little above 2^102 / pixel, so that integer distances stay integers
};

}}}  // namespace millrace::detail
