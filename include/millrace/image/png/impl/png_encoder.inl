// Definitions for png_encoder.hpp.
#pragma once

#include <millrace/image/png/png_encoder.hpp>

#include <millrace/base/error.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::vector<std::byte> png_writer::write(const image& pixels) {
  const auto [height, width, channels] = pixels.shape();
  const std::size_t row_bytes = width * channels, raw_bytes = height * (row_bytes + 1);
  const std::size_t blocks = (raw_bytes + max_stored - 1) / max_stored;
  file_.reserve(raw_bytes + 5 * blocks + 100);
  for (const char c : std::string_view("\x89PNG\r\n\x1a\n")) put(c);

  begin_chunk("IHDR", 13);
  put_u32(width);
  put_u32(height);
  // Bit depth 8; RGB or gray; then the only compression and filter methods of PNG; not interlaced.
  for (const int byte : {8, channels == 3 ? 2 : 0, 0, 0, 0}) put(byte);
  end_chunk();

  begin_chunk("IDAT", 2 + 5 * blocks + raw_bytes + 4);
  put(0x78);   // window of 32 KiB, no dictionary; the two bytes, as one number, are a multiple of 31
  put(0x01);
  remaining_ = raw_bytes;
  for (std::size_t y = 0; y < height; ++y) {
    constexpr std::uint8_t no_filter = 0;
    store({&no_filter, 1});
    store(pixels.span().subspan(y * row_bytes, row_bytes));
  }
  put_u32(adler_high_ << 16 | adler_low_);
  end_chunk();

  begin_chunk("IEND", 0);
  end_chunk();
  return std::move(file_);
}

MILLRACE_INLINE void png_writer::put_u32(std::size_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) put(static_cast<int>(value >> shift & 255));
}

MILLRACE_INLINE void png_writer::begin_chunk(std::string_view name, std::size_t bytes) {
  put_u32(bytes);
  chunk_at_ = file_.size();
  for (const char c : name) put(c);
}

MILLRACE_INLINE void png_writer::store(std::span<const std::uint8_t> bytes) {
  for (const std::uint8_t byte : bytes) {
    adler_low_ = (adler_low_ + byte) % 65'521;
    adler_high_ = (adler_high_ + adler_low_) % 65'521;
  }
  while (!bytes.empty()) {
    if (block_left_ == 0) {
      block_left_ = std::min(remaining_, max_stored);
      put(remaining_ == block_left_);
      for (const std::size_t length : {block_left_, ~block_left_})
        for (const int shift : {0, 8}) put(static_cast<int>(length >> shift & 255));
    }
    const std::size_t now = std::min(bytes.size(), block_left_);
    const auto part = std::as_bytes(bytes.first(now));
    file_.insert(file_.end(), part.begin(), part.end());
    bytes = bytes.subspan(now);
    block_left_ -= now;
    remaining_ -= now;
  }
}

}   // namespace detail

MILLRACE_INLINE std::vector<std::byte> encode_png(const image& pixels) {
  constexpr std::size_t most = 2'147'483'647;   // limit of PNG for a side and for the bytes of a chunk
  const auto& [height, width, channels] = pixels.shape();
  if ((channels != 1 && channels != 3) || height < 1 || width < 1 || height > most || width > most ||
      height * (width * channels + 1) > most - most / 1000)
    throw setup_error("an image has a shape that PNG does not support: got " + to_string(pixels.shape()) +
                          ", expected [height, width, 1 or 3]",
                      "Pass an RGB or gray image of less than 2 GB, with a height and a width of at least 1",
                      {.stage = "png"});
  return detail::png_writer().write(pixels);
}

}}   // namespace millrace
