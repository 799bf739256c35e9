// Portable kernels. Some change each pixel in place, independently of the other pixels. Others compute statistics over
// all pixels, for operations such as equalize.
//
//   mr::detail::portable_pixels::apply(tables, row, 50'176);      // maps bytes through their channel's table
//   const std::uint64_t sum = mr::detail::portable_pixels::luma_sum(row, 50'176);
//   mr::detail::portable_pixels::saturate(row, 50'176, 1.4F);
//
// L, the gray of a pixel, is (19595 R + 38470 G + 7471 B + 32768) >> 16, as in Pillow.
// Units: pixels of three bytes. Errors: none. Threads: any thread, if no two calls share pixels.
#pragma once

#include <millrace/image/color/byte_table.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The minimum and the maximum value of a channel.
struct level_range {
  int low = 255, high = 0;
};

inline int luma_of(const std::uint8_t* pixel) noexcept {
  return (pixel[0] * 19'595 + pixel[1] * 38'470 + pixel[2] * 7'471 + 32'768) >> 16;
}

struct portable_pixels {
  static void apply(const pending_byte_tables& tables, std::uint8_t* data, std::size_t pixels) noexcept {
    const byte_table red = tables[0], green = tables[1], blue = tables[2];
    for (std::uint8_t *at = data, *const end = data + 3 * pixels; at != end; at += 3) {
      at[0] = red[at[0]];
      at[1] = green[at[1]];
      at[2] = blue[at[2]];
    }
  }

  static std::uint64_t luma_sum(const std::uint8_t* data, std::size_t pixels) noexcept {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < pixels; ++i) sum += static_cast<std::uint64_t>(luma_of(data + 3 * i));
    return sum;
  }

  /// Sets the three channels to L.
  static void make_gray(std::uint8_t* data, std::size_t pixels) noexcept {
    for (std::uint8_t *at = data, *const end = data + 3 * pixels; at != end; at += 3)
      at[0] = at[1] = at[2] = static_cast<std::uint8_t>(luma_of(at));
  }

  /// Blends each pixel with its gray L. |factor| is at most 2^20.
  static void saturate(std::uint8_t* data, std::size_t pixels, float factor) noexcept {
    for (std::uint8_t *at = data, *const end = data + 3 * pixels; at != end; at += 3) {
      const int luma = luma_of(at);
      for (std::size_t c = 0; c < 3; ++c) at[c] = blended(luma, at[c], factor);
    }
  }

  static std::array<level_range, 3> ranges(const std::uint8_t* data, std::size_t pixels) noexcept {
    std::array<level_range, 3> result;
    for (std::size_t i = 0; i < pixels; ++i)
      for (std::size_t c = 0; c < 3; ++c) {
        const int value = data[3 * i + c];
        if (value < result[c].low) result[c].low = value;
        if (value > result[c].high) result[c].high = value;
      }
    return result;
  }

  /// Counts the values of each channel.
  static std::array<byte_counts, 3> count(const std::uint8_t* data, std::size_t pixels) noexcept {
    // Neighboring pixels are counted in different tables, because two increments of the same counter would depend on
    // each other.
    std::array<byte_counts, 3> even{}, odd{};
    const std::uint8_t* at = data;
    for (std::size_t i = 0; i + 2 <= pixels; i += 2, at += 6) {
      ++even[0][at[0]];
      ++even[1][at[1]];
      ++even[2][at[2]];
      ++odd[0][at[3]];
      ++odd[1][at[4]];
      ++odd[2][at[5]];
    }
    if (pixels % 2 != 0)
      for (std::size_t c = 0; c < 3; ++c) ++odd[c][at[c]];
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t value = 0; value < 256; ++value) even[c][value] += odd[c][value];
    return even;
  }
};

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
