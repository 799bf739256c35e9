// Definitions for png_decoder.hpp.
#pragma once

#include <millrace/image/png/png_decoder.hpp>

#include <millrace/simd/cpu_features.hpp>
#include <millrace/simd/words.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

#define MILLRACE_KERNELS <millrace/image/png/rgb_to_rgbx_body.inc>
#include <millrace/simd/for_each_layer.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void png_pixels::start(const png_header& header, const png_pixel_options& options) {
  header_ = header;
  options_ = options;
  const bool samples = options.layout == png_layout::samples;
  uses_alpha_ = !samples && (options.composite || options.layout == png_layout::rgba);
  pixel_bytes_ = options.layout == png_layout::rgb ? 3 : samples ? header.channels() * (header.depth == 16 ? 2 : 1) : 4;
  has_transparent_color_ = false;
  if (samples) return;
  if (uses_alpha_ && (header.color == png_color::gray || header.color == png_color::rgb)) read_transparent_color();
  if (header.color == png_color::palette || (header.color == png_color::gray && header.depth <= 8)) make_table();
}

MILLRACE_INLINE void png_pixels::choose(std::size_t left, std::size_t count) {
  left_ = left;
  count_ = count;
  if (header_.depth < 8) samples_.resize(std::max(samples_.size(), count + 8 + slack_bytes));
}

MILLRACE_INLINE void png_pixels::check_transparency(std::size_t least, std::size_t most) const {
  const std::size_t bytes = header_.transparency.size();
  if (header_.transparency_intact && bytes >= least && bytes <= most) return;
  throw_bad_png(!header_.transparency_intact
                    ? "the PNG's tRNS (transparency) has a wrong CRC"
                    : "the PNG's tRNS has the wrong size: got " + std::to_string(bytes) + " bytes, expected " +
                          std::to_string(least) + (least == most ? "" : " to " + std::to_string(most)),
                "Fetch the file again, or drop the alpha channel");
}

MILLRACE_INLINE void png_pixels::read_transparent_color() {
  if (header_.transparency.empty()) return;
  const std::size_t bytes = 2 * header_.channels();
  check_transparency(bytes, bytes);
  const std::size_t used = header_.depth == 16 ? 2 : 1;   // bytes used of a sample with two bytes
  for (std::size_t i = 0; i < header_.channels(); ++i)
    for (std::size_t k = 0; k < used; ++k)
      transparent_color_[used * i + k] = std::to_integer<std::uint8_t>(header_.transparency[2 * i + 2 - used + k]);
  if (header_.depth < 8) transparent_color_[0] &= static_cast<std::uint8_t>((1U << header_.depth) - 1);
  has_transparent_color_ = true;
}

MILLRACE_INLINE void png_pixels::make_table() {
  table_.fill({0, 0, 0, 255});
  if (header_.color == png_color::palette) {
    if (header_.palette.empty()) throw_bad_png("the PNG has no palette, but its pixels are palette indices");
    const std::size_t colors = std::min(header_.palette.size() / 3, std::size_t{1} << header_.depth);
    if (uses_alpha_ && !header_.transparency.empty()) {
      check_transparency(1, header_.palette.size() / 3);
      for (std::size_t i = 0; i < std::min(header_.transparency.size(), colors); ++i)
        table_[i][3] = std::to_integer<std::uint8_t>(header_.transparency[i]);
    }
    for (std::size_t i = 0; i < 3 * colors; ++i)
      table_[i / 3][i % 3] = std::to_integer<std::uint8_t>(header_.palette[i]);
  } else {
    const unsigned most = (1U << header_.depth) - 1;
    for (unsigned i = 0; i <= most; ++i) {
      const auto level = static_cast<std::uint8_t>(i * 255 / most);
      const bool clear = has_transparent_color_ && i == transparent_color_[0];
      table_[i] = {level, level, level, clear ? std::uint8_t{0} : std::uint8_t{255}};
    }
  }
  for (pixel& p : table_) p = blended(p);
}

MILLRACE_INLINE png_pixels::pixel png_pixels::blended(pixel p) const noexcept {
  if (!options_.composite) return p;
  for (std::size_t i = 0; i < 3; ++i) {
    const unsigned sum = p[i] * p[3] + options_.background[i] * (255U - p[3]) + 128;
    p[i] = static_cast<std::uint8_t>((sum + (sum >> 8)) >> 8);
  }
  p[3] = 255;
  return p;
}

MILLRACE_INLINE bool png_pixels::transparent(const std::uint8_t* sample) const noexcept {
  return has_transparent_color_ && std::memcmp(sample, transparent_color_.data(), header_.filter_bytes()) == 0;
}

/// Writes four bytes for each pixel. If pixels have three bytes, the next pixel overwrites the fourth.
template <class Pixel>
const std::uint8_t* png_pixels::write(std::uint8_t* to, const Pixel& pixel_at) const noexcept {
  const std::size_t count = count_;
  if (pixel_bytes_ == 4)
    for (std::size_t i = 0; i < count; ++i) std::memcpy(to + 4 * i, pixel_at(i).data(), 4);
  else
    for (std::size_t i = 0; i < count; ++i) std::memcpy(to + 3 * i, pixel_at(i).data(), 4);
  return to;
}

/// Returns one byte for each sample of less than 8 bits, beginning at column left_.
MILLRACE_INLINE const std::uint8_t* png_pixels::unpacked(const std::uint8_t* stored) noexcept {
  const unsigned depth = header_.depth;
  const std::size_t in_byte = 8 / depth, first = left_ / in_byte, last = (left_ + count_ + in_byte - 1) / in_byte;
  std::uint8_t* to = samples_.data();
  const auto put = [&to](std::uint64_t samples, std::size_t bytes) {   // the first sample is the lowest byte
    if constexpr (std::endian::native == std::endian::big) samples = __builtin_bswap64(samples);
    std::memcpy(to, &samples, sizeof samples);
    to += bytes;
  };
  for (std::size_t i = first; i < last; ++i) {
    const std::uint64_t byte = stored[i];
    // Copies of the byte are masked, so that each retains the bits of one sample, and shifted down.
    if (depth == 4) put(byte >> 4 | (byte & 15) << 8, 2);
    else if (depth == 2) put(byte >> 6 | (byte >> 4 & 3) << 8 | (byte >> 2 & 3) << 16 | (byte & 3) << 24, 4);
    else
      put(((byte * 0x0101'0101'0101'0101U & 0x0102'0408'1020'4080U) + 0x7f7f'7f7f'7f7f'7f7fU) >> 7 &
              0x0101'0101'0101'0101U,
          8);
  }
  return samples_.data() + left_ % in_byte;
}

MILLRACE_INLINE const std::uint8_t* png_pixels::convert(const std::uint8_t* stored, std::uint8_t* memory) noexcept {
  const bool wide = header_.depth == 16;
  const std::size_t channels = header_.channels(), stride = channels * (wide ? 2 : 1), high = wide ? 2 : 1;
  const std::uint8_t* const from = header_.depth < 8 ? unpacked(stored) : stored + left_ * stride;
  if (options_.layout == png_layout::samples) {
    if (!wide) return from;
    for (std::size_t i = 0; i < count_ * channels; ++i) {
      const auto sample = static_cast<std::uint16_t>(from[2 * i] << 8 | from[2 * i + 1]);
      std::memcpy(memory + 2 * i, &sample, sizeof sample);
    }
    return memory;
  }
  switch (header_.color) {
    case png_color::palette: return write(memory, [&](std::size_t i) { return table_[from[i]]; });
    case png_color::gray:
      if (!wide) return write(memory, [&](std::size_t i) { return table_[from[i]]; });
      return write(memory, [&](std::size_t i) {
        const std::uint8_t* const s = from + 2 * i;
        return blended({s[0], s[0], s[0], transparent(s) ? std::uint8_t{0} : std::uint8_t{255}});
      });
    case png_color::gray_alpha:
      return write(memory, [&](std::size_t i) {
        const std::uint8_t* const s = from + stride * i;
        return blended({s[0], s[0], s[0], s[high]});
      });
    case png_color::rgb:
      if (!wide && !has_transparent_color_ && pixel_bytes_ == 3) return from;
#if defined __x86_64__ || defined __aarch64__
      if (!wide && !has_transparent_color_ && cpu_has_word_layer()) {
        word_layer::copy_rgb_to_rgbx(from, count_, memory);
        return memory;
      }
#endif
      return write(memory, [&](std::size_t i) {
        const std::uint8_t* const s = from + stride * i;
        return blended({s[0], s[high], s[2 * high], transparent(s) ? std::uint8_t{0} : std::uint8_t{255}});
      });
    case png_color::rgba:
      if (!wide && !options_.composite && pixel_bytes_ == 4) return from;
      return write(memory, [&](std::size_t i) {
        const std::uint8_t* const s = from + stride * i;
        return blended({s[0], s[high], s[2 * high], s[3 * high]});
      });
  }
  return memory;
}

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
