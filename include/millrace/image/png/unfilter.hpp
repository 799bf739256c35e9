// Reverses the filter of a PNG's row. A filtered row contains the difference of each byte from a prediction.
//
//   const mr::detail::unfilter undo(3);                                // bytes of a pixel, at least 1
//   undo(4, {.from = filtered, .above = row_before, .to = row, .bytes = 1'500});     // 4: Paeth
//
// Filters: 0 none, 1 left, 2 above, 3 average of left and above, 4 Paeth. `above` is the unfiltered row above, or zeros
// for the first row. `to` must be neither `from` nor `above`.
// Up to `slack_bytes` may be read beyond `from` and `above`, and written beyond `to`.
// Pixels have 1, 2, 3, 4, 6 or 8 bytes. Every CPU produces the same bytes.
// Errors: none. Threads: any thread, if no two calls share an output. Source: ISO/IEC 15948, 9.2.
#pragma once

#include <millrace/simd/cpu_features.hpp>
#include <millrace/simd/words.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A filtered row, the row above it, and the destination.
struct filtered_row {
  const std::uint8_t* from = nullptr;
  const std::uint8_t* above = nullptr;
  std::uint8_t* to = nullptr;
  std::size_t bytes = 0;
};

}}}   // namespace millrace::detail

#define MILLRACE_KERNELS <millrace/image/png/unfilter_body.inc>
#include <millrace/simd/for_each_layer.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Reverses filters for pixels of any size, one channel after the other.
struct portable_unfilter {
  static void left(const filtered_row& r, std::size_t pixel_bytes) noexcept {
    for_each_channel(r, pixel_bytes, [](int left, int, int) { return left; });
  }
  static void above(const filtered_row& r) noexcept {
    for (std::size_t i = 0; i < r.bytes; ++i) r.to[i] = static_cast<std::uint8_t>(r.from[i] + r.above[i]);
  }
  static void average(const filtered_row& r, std::size_t pixel_bytes) noexcept {
    for_each_channel(r, pixel_bytes, [](int left, int up, int) { return (left + up) / 2; });
  }

  /// Predicts the neighbor (left, up or corner) that is nearest to left + up - corner. If several are nearest, predicts
  /// the first in this order. Source of the comparisons: F. Giesen, stb_image 2.28.
  static void paeth(const filtered_row& r, std::size_t pixel_bytes) noexcept {
    for_each_channel(r, pixel_bytes, [](int left, int up, int corner) {
      const int threshold = 3 * corner - (left + up), low = left < up ? left : up, high = left < up ? up : left;
      const int not_high = high <= threshold ? low : corner;
      return threshold <= low ? high : not_high;
    });
  }

 private:
  template <class Prediction>
  static void for_each_channel(const filtered_row& r, std::size_t pixel_bytes, const Prediction& predict) noexcept {
    for (std::size_t channel = 0; channel < pixel_bytes; ++channel) {
      int left = 0, corner = 0;
      for (std::size_t i = channel; i < r.bytes; i += pixel_bytes) {
        const int up = r.above[i];
        left = static_cast<std::uint8_t>(r.from[i] + predict(left, up, corner));
        r.to[i] = static_cast<std::uint8_t>(left);
        corner = up;
      }
    }
  }
};

class unfilter {
 public:
  static constexpr std::size_t slack_bytes = 32, max_rows = 4;
  static constexpr unsigned filters = 5, paeth = 4;

  explicit unfilter(std::size_t pixel_bytes = 1, bool vectors = cpu_has_word_layer()) noexcept
      : pixel_bytes_(pixel_bytes), vectors_(vectors) {}

  void operator()(unsigned filter, const filtered_row& row) const noexcept {
    if (filter == paeth) return paeth_rows({&row, 1});
#if defined __x86_64__ || defined __aarch64__
    if (vectors_ && filter == 2) return word_layer::unfilter_above(row);
    if (vectors_ && filter != 0 && pixel_bytes_ > 2) return each_width([&](auto n) { by_layer<n()>(filter, row); });
#endif
    switch (filter) {
      case 1: return portable_unfilter::left(row, pixel_bytes_);
      case 2: return portable_unfilter::above(row);
      case 3: return portable_unfilter::average(row, pixel_bytes_);
      default: std::memcpy(row.to, row.from, row.bytes);
    }
  }

  /// Reverses Paeth in up to `max_rows` consecutive rows of the same length at once. This is faster than one row at a
  /// time.
  void paeth_rows(std::span<const filtered_row> rows) const noexcept {
#if defined __x86_64__ || defined __aarch64__
    const bool narrow = rows[0].bytes / pixel_bytes_ < rows.size();
    const bool single = pixel_bytes_ == 1 && (narrow || rows.size() == 1);   // scalars are faster than one-byte vectors
    if (vectors_ && !single) {
      return each_width([&](auto n) {
        if (rows.size() == 4 && !narrow) return word_layer::unfilter_paeth<n(), 4>(rows.data());
        if (rows.size() == 3 && !narrow) return word_layer::unfilter_paeth<n(), 3>(rows.data());
        if (rows.size() == 2 && !narrow) return word_layer::unfilter_paeth<n(), 2>(rows.data());
        for (const filtered_row& row : rows) word_layer::unfilter_paeth<n(), 1>(&row);
      });
    }
#endif
    for (const filtered_row& row : rows) portable_unfilter::paeth(row, pixel_bytes_);
  }

 private:
#if defined __x86_64__ || defined __aarch64__
  template <class Use>
  void each_width(const Use& use) const noexcept {
    switch (pixel_bytes_) {
      case 1: return use(std::integral_constant<std::size_t, 1>());
      case 2: return use(std::integral_constant<std::size_t, 2>());
      case 3: return use(std::integral_constant<std::size_t, 3>());
      case 4: return use(std::integral_constant<std::size_t, 4>());
      case 6: return use(std::integral_constant<std::size_t, 6>());
      default: return use(std::integral_constant<std::size_t, 8>());
    }
  }
  template <std::size_t pixel_bytes>
  static void by_layer(unsigned filter, const filtered_row& row) noexcept {
    filter == 1 ? word_layer::unfilter_left<pixel_bytes, false>(row)
                : word_layer::unfilter_left<pixel_bytes, true>(row);
  }
#endif

  std::size_t pixel_bytes_;
  [[maybe_unused]] bool vectors_;   // used only on x86-64 and aarch64
};

}}}   // namespace millrace::detail
