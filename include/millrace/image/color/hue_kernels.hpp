// Shifts the hue of pixels in place, as Pillow does with images in HSV mode. This is the portable implementation.
//
//   mr::detail::portable_hues::shift(row, 50'176, 18);      // H += 18, modulo 256
//   mr::detail::hsv_bytes_of(pixel);                        // one pixel's H, S and V
//
// Pillow computes in floats and truncates, and Millrace computes in integers. If the exact hue or saturation is an
// integer, Pillow's result is sometimes smaller by one. Two sets in this header list the integers for which Pillow's
// result is smaller. hsv_bytes_of() subtracts one from these. Tests compare all colors with Pillow's own computation.
// Units: pixels of three bytes. Errors: none. Threads: any thread, if no two calls share pixels.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A set of byte values. Bit k % 32 of word k / 32 is 1 if the set contains the value k.
using byte_set = std::array<std::uint32_t, 8>;

constexpr int has_byte(const byte_set& set, int byte) noexcept {
  return static_cast<int>(set[static_cast<std::size_t>(byte / 32)] >> (byte % 32) & 1);
}

/// The saturations that Pillow reduces by one.
inline constexpr byte_set lowered_saturations = [] {
  byte_set set{};
  for (unsigned k = 0; k < 256; ++k)
    if (double{static_cast<float>(k) / 255.0F} * 255.0 < k) set[k / 32] |= 1U << k % 32;
  return set;
}();

/// The hues that Pillow reduces by one. Hue k is the angle 2 k / 85 on a scale of 0 to 6.
inline constexpr byte_set lowered_hues = [] {
  byte_set set{};
  for (unsigned k = 0; k < 255; ++k) {
    const unsigned sextant = 2 * k / 85, rest = 2 * k % 85;
    const float up = static_cast<float>(rest) / 85.0F, down = static_cast<float>(85 - rest) / 85.0F;
    const double angles[6] = {1.0F - down, 2.0 + up - 1.0, 3.0 - down, 4.0 + up - 1.0, 5.0 - down, up - 1.0F};
    const double turn = double{static_cast<float>(angles[sextant])} / 6.0 + 1.0;
    if (double{static_cast<float>(turn >= 1.0 ? turn - 1.0 : turn)} * 255.0 < k) set[k / 32] |= 1U << k % 32;
  }
  return set;
}();

struct hsv_bytes {
  int h, s, v;
};

inline hsv_bytes hsv_bytes_of(const std::uint8_t* pixel) noexcept {
  const int r = pixel[0], g = pixel[1], b = pixel[2];
  const int most = std::max({r, g, b}), span = most - std::min({r, g, b});
  if (span == 0) return {0, 0, most};
  int angle = r == most ? g - b : g == most ? 2 * span + b - r : 4 * span + r - g;   // angle (0 to 6) * span
  if (angle < 0) angle += 6 * span;
  const int h = 85 * angle / (2 * span), s = 255 * span / most;
  const bool exact_h = h * 2 * span == 85 * angle, exact_s = s * most == 255 * span;
  return {exact_h ? h - has_byte(lowered_hues, h) : h, exact_s ? s - has_byte(lowered_saturations, s) : s, most};
}

inline void put_hsv_bytes(const hsv_bytes& from, std::uint8_t* pixel) noexcept {
  const int sextant = 2 * from.h / 85, rest = 2 * from.h % 85;
  const int least = (2 * from.v * (255 - from.s) + 255) / 510;
  const int middle = (2 * from.v * (21'675 - from.s * (sextant % 2 == 0 ? 85 - rest : rest)) + 21'675) / 43'350;
  const int by_rank[3] = {from.v, middle, least};
  constexpr std::uint8_t rank[7][3] = {{0, 1, 2}, {1, 0, 2}, {2, 0, 1}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}, {0, 1, 2}};
  for (std::size_t c = 0; c < 3; ++c)
    pixel[c] = static_cast<std::uint8_t>(by_rank[rank[static_cast<std::size_t>(sextant)][c]]);
}

struct portable_hues {
  /// Adds `by`, 0 to 255, to each H.
  static void shift(std::uint8_t* data, std::size_t pixels, int by) noexcept {
    for (std::uint8_t *at = data, *const end = data + 3 * pixels; at != end; at += 3) {
      hsv_bytes hsv = hsv_bytes_of(at);
      hsv.h = (hsv.h + by) & 255;
      put_hsv_bytes(hsv, at);
    }
  }

  /// Replaces R, G and B by H, S and V. from_hsv() does the reverse.
  static void to_hsv(std::uint8_t* data, std::size_t pixels) noexcept {
    for (std::uint8_t *at = data, *const end = data + 3 * pixels; at != end; at += 3) {
      const hsv_bytes hsv = hsv_bytes_of(at);
      at[0] = static_cast<std::uint8_t>(hsv.h);
      at[1] = static_cast<std::uint8_t>(hsv.s);
      at[2] = static_cast<std::uint8_t>(hsv.v);
    }
  }

  static void from_hsv(std::uint8_t* data, std::size_t pixels) noexcept {
    for (std::uint8_t *at = data, *const end = data + 3 * pixels; at != end; at += 3)
      put_hsv_bytes({at[0], at[1], at[2]}, at);
  }
};

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
