// Decodes a region of a PNG, row by row; one decoder is reused for all images.
//
//   mr::detail::png_decoder d;                                          // in a worker's scratch
//   const mr::detail::png_header& h = d.open(bytes, {.max_pixels = 1'000'000});
//   d.start({.left = 60, .top = 40, .right = 300, .bottom = 200}, {.layout = mr::detail::png_layout::rgbx});
//   while (const std::uint8_t* row = d.next()) use(row, d.row_bytes()); // 160 rows of 240 pixels
//   d.finish();
//   d.decode(region, options, use_row);              // or in one call, with use_row(std::size_t y, std::span row)
//
// Supports all color types and depths of PNG, and interlaced images. For layouts, see png_pixels.hpp.
// Decoding stops at the end of the region, so damage below the region is not detected. If the region includes the last
// row, damage up to the end of the file is detected. An interlaced image is decoded completely by the first call of
// next().
// Errors: data_error with the stage "png". All rows before the damage are delivered and correct. Nothing is printed.
// Memory: see png_rows.hpp; interlaced images also need the pixels of the region. Threads: not thread-safe; one thread
// at a time.
// Source: ISO/IEC 15948 (PNG, third edition: W3C, 2025).
#pragma once

#include <millrace/image/png/png_pixels.hpp>
#include <millrace/image/png/png_rows.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Rows [top, bottom) and columns [left, right), which must be inside the image.
struct png_region {
  std::size_t left = 0, top = 0, right = 0, bottom = 0;
};

class png_decoder {
 public:
  /// Reads the header. `file` must stay valid until the last row has been delivered. Throws data_error if `file` is not
  /// a PNG, is damaged, or exceeds the limits.
  const png_header& open(std::span<const std::byte> file, const png_limits& limits = {});

  /// Throws data_error if the file is too short to contain the rows above `bottom`.
  void expect_rows(std::size_t bottom);

  /// Begins to decode a region of at least one pixel.
  void start(const png_region& region, const png_pixel_options& options);

  /// Returns the number of bytes in a row of the region.
  std::size_t row_bytes() const noexcept { return row_bytes_; }

  /// Returns the next row of the region; null after the last row. The row is valid until the next call.
  const std::uint8_t* next();

  /// Writes the next row to `to`, which must have row_bytes() bytes. Returns false after the last row.
  bool next_to(std::uint8_t* to);

  /// Checks the file for damage after the last row, if the region includes the last row.
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
