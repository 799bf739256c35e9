// Encodes pixels as a PNG file in memory, losslessly and uncompressed.
//
//   std::vector<std::byte> file = mr::encode_png(pixels);
//
// Shape: [height, width, 3] RGB or [height, width, 1] gray, u8. The file is slightly larger than the pixels. Use
// encode_png() for images to inspect, and encode_jpeg() for small files.
// Errors: setup_error if PNG does not support the shape. Threads: pure functions; any thread.
// Format: PNG (RFC 2083, ISO/IEC 15948) with one IDAT chunk. The chunk contains a zlib stream (RFC 1950) of stored
// deflate blocks (RFC 1951, 3.2.4) with unfiltered rows.
#pragma once

#include <millrace/base/crc32c.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

class png_writer {
 public:
  std::vector<std::byte> write(const image& pixels);

 private:
  static constexpr std::size_t max_stored = 65'535;   // maximum bytes of a stored block

  void put(int byte) { file_.push_back(static_cast<std::byte>(byte)); }
  void put_u32(std::size_t value);
  void begin_chunk(std::string_view name, std::size_t bytes);
  void end_chunk() { put_u32(crc32(std::span(file_).subspan(chunk_at_))); }

  /// Appends bytes to stored blocks. The header of each block contains the block's length and whether the block is the
  /// last.
  void store(std::span<const std::uint8_t> bytes);

  std::vector<std::byte> file_;
  std::size_t chunk_at_ = 0, remaining_ = 0, block_left_ = 0;
  std::uint32_t adler_low_ = 1, adler_high_ = 0;
};

}   // namespace detail

/// Returns `pixels`, [height, width, 1 or 3] u8, as an uncompressed PNG file.
/// Throws setup_error if PNG does not support the shape.
std::vector<std::byte> encode_png(const image& pixels);

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/png/impl/png_encoder.inl>
#endif
