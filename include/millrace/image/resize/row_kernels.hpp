// The vertical half of a resize. An output row is a weighted sum of input rows, rounded to bytes. If the input rows are
// luma and chroma, the output row is converted to RGB. Input rows are in Q7 (numbers with 7 fraction bits). A tap is an
// input row with its weight.
//
//   mr::detail::row_taps t{.rows = {a, b}, .weights = {6000, 10384}, .count = 2,
//                          .plane_stride = 224};                     // a row has three planes of 224 numbers: R, G, B
//   mr::detail::portable_row_blends::blend_rgb(t, {.bytes = row, .columns = 224});
//   mr::detail::portable_row_blends::blend_ycc(luma, chroma, {.bytes = row, .columns = 224});
//
// The input rows must be from the column kernels of the same implementation, because each implementation has its own
// order of columns.
// - Weights have 14 fraction bits, and the weights of an output row sum to 1. No weight may be above 1.
// - Negative weights must be first, because a sum saturates at the largest 16-bit number.
// - blend_rgb computes R, G and B in the same way. A gray image is RGB with a plane_stride of 0.
// - blend_ycc converts luma and centered chroma (chroma minus 128) to RGB. The weights of chroma include factors of the
//   color conversion; see tap_row_weights. Colors are clamped after the resize.
// - add_rows adds four rows of u8 to 32-bit sums. add_lines adds four rows of Q7 to 32-bit sums. Both functions are for
//   output rows with many input rows.
//
// Errors: none. Threads: pure functions; any thread.
#pragma once

#include <millrace/image/resize/column_kernels.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline constexpr std::size_t max_row_taps = 10;

struct row_taps {
  static constexpr std::size_t capacity = max_row_taps + 1;   // one more, because callers split a weight above 1

  const std::int16_t* rows[capacity] = {};
  std::int16_t weights[capacity] = {};
  std::size_t count = 0;
  std::size_t plane_stride = 0;   ///< elements between the planes of a row
  bool clamps = false;            ///< whether blend_ycc must clamp its sums

  void add(const std::int16_t* row, std::int16_t weight) noexcept {
    rows[count] = row;
    weights[count++] = weight;
  }
};

struct row_output {
  std::uint8_t* bytes = nullptr;   ///< one row, with space for a multiple of columns_at_once columns
  std::size_t columns = 0;
  bool planar = false;            ///< whether the row has three planes; if false, R, G, B of each column are adjacent
  std::size_t plane_bytes = 0;    ///< distance between the planes of a planar row
  bool streams = false;           ///< stores bypass the cache; `columns` and the row's address must be multiples of 32
  bool three_way_logic = false;   ///< allows instructions for three-way logic, which do not change the result
  bool wide_vectors = false;      ///< allows registers of 512 bits; requires cpu_has_wide_vectors()
};

/// Four source rows to add to the sums of one output row.
struct row_addition {
  const std::uint8_t* rows[4];
  std::int16_t weights[4];            ///< 14 fraction bits; 0 for a row that this output does not use
  std::size_t count = 0;              ///< samples
  std::int32_t* sums = nullptr;       ///< `count` elements, padded to a multiple of 16
  bool begins = false;                ///< if true, the sums are overwritten; if false, the rows are added
  std::int16_t* finished = nullptr;   ///< receives the Q7 row if these are the last rows; else null
};

/// Four rows of Q7 to add to the sums of one output row.
struct line_addition {
  const std::int16_t* rows[4];
  std::int16_t weights[4];            ///< 14 fraction bits; 0 for a row that this output does not use
  std::size_t count = 0;              ///< elements, a multiple of 16
  std::int32_t* sums = nullptr;       ///< `count` elements
  bool begins = false;                ///< if true, the sums are overwritten; if false, the rows are added
  std::int16_t* finished = nullptr;   ///< receives the Q7 row if these are the last rows; else null
};

/// Converts the weight of a row to the weights of the row's colors.
struct tap_row_weights {
  static constexpr std::int16_t rgb(int weight) noexcept {
    return static_cast<std::int16_t>(std::min(2 * weight, 32'767));
  }
  static constexpr std::int16_t blue(int weight) noexcept {   // 1.772 / 2; from 14 to 15 fraction bits
    return static_cast<std::int16_t>((weight * 58'064 + 16'384) >> 15);
  }
  static constexpr std::int16_t red(int weight) noexcept {   // 1.402 / 2
    return static_cast<std::int16_t>((weight * 45'940 + 16'384) >> 15);
  }
  static constexpr std::int16_t green_of_blue = 6'364, green_of_red = 16'691;

  /// The range of blend_ycc's sums if all luma and chroma values, before centering, are in 0..255. The range of luma
  /// includes one half for rounding.
  struct range {
    int least, largest;
  };
  static constexpr range luma_range{32, (255 << 6) + 32}, blue_range{-14'516, 14'403}, red_range{-11'485, 11'395};
};

struct portable_row_blends {
  static void blend_rgb(const row_taps& t, const row_output& to) noexcept {
    for (std::size_t x = 0; x < to.columns; ++x)
      for (std::size_t c = 0; c < 3; ++c) {
        int sum = 0;
        for (std::size_t k = 0; k < t.count; ++k)
          sum += rounded(t.rows[k][c * t.plane_stride + x], tap_row_weights::rgb(t.weights[k]));
        put(to, x, c, (sum + 64) >> 7);
      }
  }

  static void blend_ycc(const row_taps& luma, const row_taps& chroma, const row_output& to) noexcept {
    for (std::size_t x = 0; x < to.columns; ++x) {
      int y = 32, blue = 0, red = 0;
      for (std::size_t k = 0; k < luma.count; ++k) y += rounded(luma.rows[k][x], luma.weights[k]);
      for (std::size_t k = 0; k < chroma.count; ++k) {
        blue += rounded(chroma.rows[k][x], tap_row_weights::blue(chroma.weights[k]));
        red += rounded(chroma.rows[k][chroma.plane_stride + x], tap_row_weights::red(chroma.weights[k]));
      }
      if (luma.clamps) {
        using w = tap_row_weights;
        y = std::clamp(y, w::luma_range.least, w::luma_range.largest);
        blue = std::clamp(blue, w::blue_range.least, w::blue_range.largest);
        red = std::clamp(red, w::red_range.least, w::red_range.largest);
      }
      put(to, x, 0, (y + red) >> 6);
      put(to, x, 1,
          (y - rounded(blue, tap_row_weights::green_of_blue) - rounded(red, tap_row_weights::green_of_red)) >> 6);
      put(to, x, 2, (y + blue) >> 6);
    }
  }

  static void add_rows(const row_addition& a) noexcept {
    for (std::size_t x = 0; x < a.count; ++x) {
      std::int32_t sum = a.begins ? 0 : a.sums[x];
      for (std::size_t k = 0; k < 4; ++k) sum += a.weights[k] * a.rows[k][x];
      if (a.finished != nullptr) a.finished[x] = static_cast<std::int16_t>((sum + 64) >> 7);
      else a.sums[x] = sum;
    }
  }

  static void add_lines(const line_addition& a) noexcept {
    for (std::size_t x = 0; x < a.count; ++x) {
      std::int32_t sum = a.begins ? 0 : a.sums[x];
      for (std::size_t k = 0; k < 4; ++k) sum += a.weights[k] * a.rows[k][x];
      if (a.finished != nullptr)
        a.finished[x] = static_cast<std::int16_t>(std::clamp((sum + 8'192) >> 14, -32'768, 32'767));
      else a.sums[x] = sum;
    }
  }

 private:
  static int rounded(int value, int weight) noexcept { return (value * weight + (1 << 14)) >> 15; }

  static void put(const row_output& to, std::size_t x, std::size_t channel, int value) noexcept {
    const auto byte = static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
    to.bytes[to.planar ? channel * to.plane_bytes + x : 3 * x + channel] = byte;
  }
};

}}}   // namespace millrace::detail
