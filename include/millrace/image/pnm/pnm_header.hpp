// Reads the header of a PNM file, which precedes the samples.
//
//   if (const auto h = mr::detail::read_pnm_header(file)) use(h->width, h->height, file.subspan(h->data_at));
//
// A header contains P5 (gray) or P6 (RGB), then the width, the height and the largest value, each from 1 to 65,535.
// Blanks or comments precede each number; a comment extends from # to the end of the line. One blank follows the
// header, then the samples.
// Errors: none. Threads: pure functions; any thread. Format: the netpbm pages pgm(5) and ppm(5).
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <optional>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct pnm_header {
  std::size_t width = 0, height = 0, channels = 0, largest = 0;
  std::size_t data_at = 0;   ///< offset of the samples

  std::size_t sample_bytes() const noexcept { return largest > 255 ? 2 : 1; }
  std::size_t row_bytes() const noexcept { return width * channels * sample_bytes(); }
  std::size_t data_bytes() const noexcept { return row_bytes() * height; }
};

/// Reads the header; returns nothing if the file does not begin with one. Does not check whether the samples are
/// complete.
std::optional<pnm_header> read_pnm_header(std::span<const std::byte> file) noexcept;

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/pnm/impl/pnm_header.inl>
#endif
