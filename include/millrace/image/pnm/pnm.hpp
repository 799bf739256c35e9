// Images in PNM files: PGM (P5) and PPM (P6), of 8 or 16 bits.
//
//   mr::picture p = mr::pnm(r["ppm"]).random_resized_crop(224, rng).random_flip(rng);
//   mr::image pixels = mr::pnm(r["pgm;ppm"]).pixels();
//
// Gray becomes RGB. Values are scaled from 0..maxval to 0..255 and rounded. Only the first image of a file is read;
// later bytes are ignored. The file must contain the full image, even if a crop needs only some rows.
// Errors: data_error, with shard, key and stage "pnm", if the file is not a PGM or PPM, or is truncated.
// Threads: not synchronized.
// Format: Netpbm's ppm(5) and pgm(5).
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/picture/picture.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// The header of a PNM file. It precedes the samples, which here are the color values of the pixels. A header contains
// P5 (gray) or P6 (RGB), then width, height and the largest value, each from 1 to 65,535. Blanks or comments precede
// each number; a comment extends from # to the end of the line. One blank separates the header from the samples.
// Format: the netpbm pages pgm(5) and ppm(5).

struct pnm_header {
  std::size_t width = 0, height = 0, channels = 0, largest = 0;
  std::size_t data_at = 0;   ///< offset of the samples

  std::size_t sample_bytes() const noexcept { return largest > 255 ? 2 : 1; }
  std::size_t row_bytes() const noexcept { return width * channels * sample_bytes(); }
  std::size_t data_bytes() const noexcept { return row_bytes() * height; }
};

/// Reads the header; returns nothing if the file does not begin with a header. Does not check whether the samples are
/// complete.
std::optional<pnm_header> read_pnm_header(std::span<const std::byte> file) noexcept;

}}}   // namespace millrace::detail

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of pnm().
struct pnm_options {
  picture_limits limits{};   ///< max_pixels: maximum number of pixels
};

namespace detail {

/// Returns whether the bytes begin with a PGM or PPM signature.
bool is_pnm(std::span<const std::byte> file) noexcept;

}   // namespace detail

/// Returns a plan of the full image in `data`. Reads only the header.
/// Throws data_error in these cases: the file is not a PGM or PPM, the file is truncated, the image exceeds max_pixels.
picture pnm(bytes data, const pnm_options& options = {});

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/pnm/impl/pnm.inl>
#endif
