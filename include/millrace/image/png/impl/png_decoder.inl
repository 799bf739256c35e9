// Definitions for png_decoder.hpp.
#pragma once

#include <millrace/image/png/png_decoder.hpp>

#include <algorithm>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The pixels of a pass: those at x + i * across, y + k * down.
struct adam7_pass {
  std::size_t x, y, across, down;

  static std::size_t count(std::size_t first, std::size_t step, std::size_t side) noexcept {
    return side <= first ? 0 : (side - first + step - 1) / step;
  }
  std::size_t width(std::size_t of_picture) const noexcept { return count(x, across, of_picture); }
  std::size_t height(std::size_t of_picture) const noexcept { return count(y, down, of_picture); }
};
inline constexpr adam7_pass adam7[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                       {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

MILLRACE_INLINE const png_header& png_decoder::open(std::span<const std::byte> file, const png_limits& limits) {
  file_ = file;
  limits_ = limits;
  header_ = read_png_header(file, limits);
  return header_;
}

MILLRACE_INLINE void png_decoder::expect_rows(std::size_t bottom) {
  rows_.begin(file_, header_, {});
  rows_.expect(std::uint64_t{header_.row_bytes(header_.width) + 1} * bottom);
}

MILLRACE_INLINE void png_decoder::start(const png_region& region, const png_pixel_options& options) {
  region_ = region;
  pixels_.start(header_, options);
  row_bytes_ = (region.right - region.left) * pixels_.pixel_bytes();
  y_ = region.top;
  begun_ = false;
}

MILLRACE_INLINE const std::uint8_t* png_decoder::next() {
  if (!begun_) begin_rows();
  if (y_ == region_.bottom) return nullptr;
  const std::size_t y = y_++ - region_.top;
  if (header_.interlaced) return picture_.get() + y * row_bytes_;
  return pixels_.convert(rows_.next(), row_.get());
}

MILLRACE_INLINE bool png_decoder::next_to(std::uint8_t* to) {
  const std::uint8_t* const row = next();
  if (row) std::memcpy(to, row, row_bytes_);
  return row != nullptr;
}

MILLRACE_INLINE void png_decoder::finish() {
  if (header_.interlaced || region_.bottom == header_.height) rows_.check_end();
}

MILLRACE_INLINE void png_decoder::begin_rows() {
  begun_ = true;
  const bool to_the_end = header_.interlaced || region_.bottom == header_.height;
  rows_.begin(file_, header_, {.to_the_end = to_the_end, .check_sums = limits_.check_sums});
  if (header_.interlaced) return decode_passes();
  const std::size_t width = region_.right - region_.left;
  pixels_.choose(region_.left, width);
  row_.at_least(row_bytes_ + png_pixels::slack_bytes);
  rows_.begin_rows({.row_bytes = header_.row_bytes(header_.width), .rows = region_.bottom});
  for (std::size_t y = 0; y < region_.top; ++y) rows_.next();
}

MILLRACE_INLINE void png_decoder::decode_passes() {
  std::uint64_t stored = 0;
  for (const adam7_pass& pass : adam7)
    if (const std::size_t width = pass.width(header_.width); width > 0)
      stored += std::uint64_t{header_.row_bytes(width) + 1} * pass.height(header_.height);
  rows_.expect(stored);
  std::uint8_t* const to = picture_.at_least((region_.bottom - region_.top) * row_bytes_);
  for (unsigned pass = 0; pass < std::size(adam7); ++pass) decode_pass(pass, to);
}

MILLRACE_INLINE void png_decoder::decode_pass(unsigned number, std::uint8_t* to) {
  const adam7_pass& pass = adam7[number];
  const std::size_t width = pass.width(header_.width), height = pass.height(header_.height);
  if (width == 0 || height == 0) return;
  const std::size_t first = adam7_pass::count(pass.x, pass.across, region_.left);
  const std::size_t end = adam7_pass::count(pass.x, pass.across, region_.right);
  const std::size_t bytes = pixels_.pixel_bytes();
  pixels_.choose(first, end - first);
  std::uint8_t* const memory = row_.at_least((end - first) * bytes + png_pixels::slack_bytes);
  rows_.begin_rows({.row_bytes = header_.row_bytes(width), .rows = height, .pass = number + 1});
  for (std::size_t y = pass.y; const std::uint8_t* stored = rows_.next(); y += pass.down) {
    if (y < region_.top || y >= region_.bottom) continue;
    const std::uint8_t* from = pixels_.convert(stored, memory);
    std::uint8_t* at = to + (y - region_.top) * row_bytes_ + (pass.x + first * pass.across - region_.left) * bytes;
    for (std::size_t i = first; i < end; ++i, from += bytes, at += pass.across * bytes) std::memcpy(at, from, bytes);
  }
}

}}}   // namespace millrace::detail
