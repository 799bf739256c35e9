// Decodes a region of a PNG, row by row; one decoder is reused for all images.
//
//   mr::detail::png_decoder d;                                          // in a worker's scratch
//   const mr::detail::png_header& h = d.open(bytes, {.max_pixels = 1'000'000});
//   d.start({.left = 60, .top = 40, .right = 300, .bottom = 200}, {.layout = mr::detail::png_layout::rgbx});
//   while (const std::uint8_t* row = d.next()) use(row, d.row_bytes()); // 160 rows of 240 pixels
//   d.finish();
//   d.decode(region, options, use_row);              // or in one call, with use_row(std::size_t y, std::span row)
//
// Supports all color types and depths of PNG, and interlaced images. For layouts, see png_pixels.
// Decoding stops at the end of the region, so damage below the region is not detected. If the region includes the last
// row, damage up to the end of the file is detected. An interlaced image is decoded completely by the first call of
// next().
// Errors: data_error with the stage "png". All rows before the damage are delivered and correct. Nothing is printed.
// Memory: see png_rows.hpp. For an interlaced image, the decoder also stores the pixels of the region. Threads: not
// thread-safe; one thread at a time.
// Source: ISO/IEC 15948 (PNG, third edition: W3C, 2025).
#pragma once

#include <millrace/image/png/png_rows.hpp>
#include <millrace/simd/cpu_features.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Converts the stored rows of a PNG to pixels: RGB with or without a fourth byte, or unchanged samples. A sample is a
// stored channel value or palette index.
//
//   mr::detail::png_pixels pixels;
//   pixels.start(header, {.layout = mr::detail::png_layout::rgbx});
//   pixels.choose(100, 224);                                          // columns [100, 324)
//   const std::uint8_t* row = pixels.convert(stored, memory);         // points into `memory` or `stored`
//
// Palettes are applied. Gray becomes three equal channels, and samples of fewer than 8 bits are scaled to 0..255. Only
// the high byte of 16-bit samples is used, as in Pillow and libpng. Colors beyond the end of a palette are black, as in
// libpng.
// The options select whether alpha is dropped without a change of the colors, kept, or used to composite pixels over a
// color. The transparency chunk, tRNS, is read only if alpha is kept or used to composite. A composited value is
// (color * alpha + background * (255 - alpha)) / 255, rounded. The layout `samples` keeps the stored values: palette
// indices, and gray without scaling. In this layout, a 16-bit sample becomes two bytes in the machine's byte order. Any
// other sample becomes one byte. Up to `slack_bytes` may be read beyond `stored` and written beyond `memory`.
// Errors: data_error if a palette must be applied but is missing. data_error if tRNS is read and has a wrong size or
// CRC. Threads: not thread-safe; one thread at a time.
// Source: ISO/IEC 15948, 11.2 and 11.3.2; the division by 255 is Pillow's.

enum class png_layout : std::uint8_t {
  rgb,
  rgbx,   ///< four bytes; the last is undefined
  rgba,   ///< with alpha, which is 255 if the file has none
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

  /// Converts a stored row. Returns the pixels, which are in `memory`, in `stored` or in this object.
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
  std::array<pixel, 256> table_{};   // converted pixel of each palette index, or of each gray value of up to 8 bits
  std::array<std::uint8_t, 6> transparent_color_{};   // the color in tRNS, as stored
  bool has_transparent_color_ = false;
  std::vector<std::uint8_t> samples_;   // a row of unpacked samples, if samples have less than 8 bits
};

/// Rows [top, bottom) and columns [left, right), which must be inside the image.
struct png_region {
  std::size_t left = 0, top = 0, right = 0, bottom = 0;
};

class png_decoder {
 public:
  /// Reads the header. `file` must stay valid until the last call for this image returns. Throws data_error if `file`
  /// is not a PNG, is damaged, or exceeds the limits.
  const png_header& open(std::span<const std::byte> file, const png_limits& limits = {});

  /// Throws data_error if the file is too short to contain rows 0 to `bottom` - 1.
  void expect_rows(std::size_t bottom);

  /// Begins to decode a region of at least one pixel.
  void start(const png_region& region, const png_pixel_options& options);

  /// Returns the number of bytes in a row of the region.
  std::size_t row_bytes() const noexcept { return row_bytes_; }

  /// Returns the next row of the region; null after the last row. The row is valid until the next call.
  const std::uint8_t* next();

  /// Writes the next row to `to`, which must have row_bytes() bytes. Returns false after the last row.
  bool next_to(std::uint8_t* to);

  /// If the region includes the last row of the image, or the image is interlaced, checks the rest of the file for
  /// damage. Otherwise, does nothing.
  void finish();

  /// Calls use(y, row) for each row of the region; `y` is the index of the row in the image.
  template <class Use>
  void decode(const png_region& region, const png_pixel_options& options, Use&& use) {
    start(region, options);
    for (std::size_t y = region.top; const std::uint8_t* row = next(); ++y) use(y, std::span(row, row_bytes_));
    finish();
  }

 private:
  void begin_rows();
  void decode_passes();
  void decode_pass(unsigned pass, std::uint8_t* to);

  std::span<const std::byte> file_{};
  png_limits limits_;
  png_header header_;
  png_region region_;
  png_rows rows_;
  png_pixels pixels_;
  std::size_t row_bytes_ = 0, y_ = 0;
  bool begun_ = false;
  png_memory row_, picture_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/png/impl/png_decoder.inl>
#endif
