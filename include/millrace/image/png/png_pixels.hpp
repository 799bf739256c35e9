// Converts the stored rows of a PNG to pixels: RGB with or without a fourth byte, or unchanged samples.
//
//   mr::detail::png_pixels pixels;
//   pixels.start(header, {.layout = mr::detail::png_layout::rgbx});
//   pixels.choose(100, 224);                                          // columns [100, 324)
//   const std::uint8_t* row = pixels.convert(stored, memory);         // points into `memory` or `stored`
//
// Palettes are applied. Gray becomes three equal channels, and samples of fewer than 8 bits are scaled to 0..255. Only
// the high byte of 16-bit samples is used, as in Pillow and libpng. Colors beyond the end of a palette are black, as in
// libpng.
// Alpha is dropped without changing the colors, or kept, or used to composite pixels over a color. The transparency
// chunk, tRNS, is read only if alpha is used. A composited value is (color * alpha + background * (255 - alpha)) / 255,
// rounded.
// The layout `samples` keeps the stored values: palette indices, and gray without scaling. A 16-bit sample becomes two
// bytes in the machine's byte order, any other sample becomes one byte.
// Up to `slack_bytes` may be read beyond `stored` and written beyond `memory`.
// Errors: data_error if a palette or a needed tRNS is missing or invalid. Threads: not thread-safe; one thread at a
// time.
// Source: ISO/IEC 15948, 11.2 and 11.3.2; the division by 255 is Pillow's.
#pragma once

#include <millrace/image/png/png_header.hpp>
#include <millrace/simd/cpu_features.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

enum class png_layout : std::uint8_t {
  rgb,
  rgbx,   ///< four bytes; the last is undefined
  rgba,   ///< alpha is kept; 255 if the file has no alpha
  samples
};

struct png_pixel_options {
  png_layout layout = png_layout::rgb;
  bool composite = false;   ///< composites over `background`; rgba then has alpha 255
  std::array<std::uint8_t, 3> background{};
};

class png_pixels {
 public:
  static constexpr std::size_t slack_bytes = 64;

  void start(const png_header& header, const png_pixel_options& options);
  /// Sets the columns to convert.
  void choose(std::size_t left, std::size_t count);

  /// Returns the number of bytes of a converted pixel; row_bytes() returns the bytes of a converted row.
  std::size_t pixel_bytes() const noexcept { return pixel_bytes_; }
  std::size_t row_bytes() const noexcept { return pixel_bytes_ * count_; }

  /// Converts a stored row. Returns the pixels, which are in `memory`, or in `stored` if the row needs no conversion.
  const std::uint8_t* convert(const std::uint8_t* stored, std::uint8_t* memory) noexcept;

 private:
  using pixel = std::array<std::uint8_t, 4>;

  void make_table();
  void read_transparent_color();
  void check_transparency(std::size_t least, std::size_t most) const;
  pixel blended(pixel p) const noexcept;
  const std::uint8_t* unpacked(const std::uint8_t* stored) noexcept;
  bool transparent(const std::uint8_t* sample) const noexcept;

  template <class Pixel>
  const std::uint8_t* write(std::uint8_t* to, const Pixel& pixel_at) const noexcept;

  png_header header_;
  png_pixel_options options_;
  bool uses_alpha_ = false;
  std::size_t left_ = 0, count_ = 0, pixel_bytes_ = 3;
  std::array<pixel, 256> table_{};                    // for palettes, and for gray of up to 8 bits
  std::array<std::uint8_t, 6> transparent_color_{};   // as stored
  bool has_transparent_color_ = false;
  std::vector<std::uint8_t> samples_;   // a row of unpacked samples, if samples have less than 8 bits
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/png/impl/png_pixels.inl>
#endif
