// libjpeg's "fancy" upsampling of chroma and its conversion of YCbCr to RGB, bit for bit, in small row kernels.
//
//   using kernels = mr::detail::portable_upsampling;
//   kernels::sum_rows(nearer, farther, count, sums);                   // 3 * nearer + farther
//   kernels::sum_four_rows({a, b, c, d}, count, {ba, bc, cb, cd});     // four sums; ba is 3 * b + a
//   kernels::color_half({.luma = y, .blue = sums_u, .red = sums_v, .count = 64, .rgb = {red, green, blue}});
//
// On a subsampled axis, the chroma of a pixel is 3/4 of the nearer sample plus 1/4 of the farther sample. `sums`
// contain four times the chroma values, as i16 numbers. The biases of color_row round as libjpeg does. If both axes are
// subsampled, the biases are 8 for even and 7 for odd pixels. If only the horizontal axis is subsampled, the biases are
// 4 for even and 8 for odd pixels. All implementations produce the same bits.
// Units: `count` is a number of samples, or of pixels in color_row. A sample is one value of luma or chroma.
// color_half() also reads the sums with the indices -1 and ceil(count / 2). Kernels may write and read up to 31 samples
// beyond `count`. Errors: none. Threads: pure functions; any thread. Source of the rule: libjpeg-turbo 2.1.5,
// jdsample.c and jdcolor.c.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// One row of pixels to compute from luma and chroma.
template <class Chroma>
struct color_row {
  const std::uint8_t* luma = nullptr;
  const Chroma *blue = nullptr, *red = nullptr;   ///< chroma samples (u8), or their sums (i16)
  std::size_t count = 0;                          ///< pixels
  int even_bias = 8, odd_bias = 7;                ///< used only for sums
  bool wide_vectors = false;                      ///< allows registers of 512 bits; requires cpu_has_wide_vectors()
  std::uint8_t* rgb[3] = {};
};

/// The factors of chroma (u for blue, v for red) in vector kernels, in units of 2^-15. For a luma of y:
/// R = y + v + red * v, B = y + u + blue * u, G = y + green_of_blue * u + green_of_red * v.
struct color_factors {
  static constexpr std::int16_t red = 13'173, blue = 25'297, green_of_blue = -11'277, green_of_red = -23'401;
};

struct portable_upsampling {
  static void sum_rows(const std::uint8_t* nearer, const std::uint8_t* farther, std::size_t count,
                       std::int16_t* sums) noexcept {
    for (std::size_t i = 0; i < count; ++i) sums[i] = static_cast<std::int16_t>(3 * nearer[i] + farther[i]);
  }

  /// Computes the sums of four pixel rows from four consecutive chroma rows. rows[1] is nearest to the first two pixel
  /// rows. rows[2] is nearest to the other two pixel rows.
  static void sum_four_rows(const std::uint8_t* const (&rows)[4], std::size_t count,
                            std::int16_t* const (&sums)[4]) noexcept {
    for (std::size_t k = 0; k < 4; ++k) sum_rows(rows[1 + k / 2], rows[k / 2 + k % 2 * 2], count, sums[k]);
  }

  /// Computes a chroma row if only the vertical axis is subsampled. `bias` determines the rounding: 1 if the farther
  /// row is above, 2 if it is below.
  static void blend_rows(const std::int16_t* sums, std::size_t count, int bias, std::uint8_t* out) noexcept {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>((sums[i] + bias) >> 2);
  }

  /// Converts a row with chroma of half the width, passed as sums. The row must begin at an even column of the image.
  static void color_half(const color_row<std::int16_t>& row) noexcept {
    const auto chroma = [&](const std::int16_t* sums, std::size_t x) {
      const std::int16_t* own = sums + x / 2;
      return x % 2 == 0 ? (3 * own[0] + own[-1] + row.even_bias) >> 4 : (3 * own[0] + own[1] + row.odd_bias) >> 4;
    };
    for (std::size_t x = 0; x < row.count; ++x) color_pixel(row, x, chroma(row.blue, x), chroma(row.red, x));
  }

  /// Converts a row with chroma of the full width.
  static void color_full(const color_row<std::uint8_t>& row) noexcept {
    for (std::size_t x = 0; x < row.count; ++x) color_pixel(row, x, row.blue[x], row.red[x]);
  }

 private:
  static std::uint8_t clamped(int value) noexcept {
    return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
  }

  template <class Row>
  static void color_pixel(const Row& row, std::size_t x, int blue, int red) noexcept {
    constexpr int half = 1 << 15;
    const int y = row.luma[x], u = blue - 128, v = red - 128;
    row.rgb[0][x] = clamped(y + ((91'881 * v + half) >> 16));
    row.rgb[1][x] = clamped(y + ((-22'554 * u - 46'802 * v + half) >> 16));
    row.rgb[2][x] = clamped(y + ((116'130 * u + half) >> 16));
  }
};

}}}   // namespace millrace::detail
