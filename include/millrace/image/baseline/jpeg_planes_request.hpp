// What is asked of the own JPEG decoder, and what it answers.
//
//   mr::jpeg_planes_request ask{.bytes = file, .left = 60, .top = 40, .right = 300, .bottom = 200};
//   mr::jpeg_planes_result got = ...;                                     // see jpeg_plane_decoder.hpp
//   if (got.refusal != mr::jpeg_refusal::none) ...                        // libjpeg decodes this one
//
// The rectangle is in luma pixels, right and bottom beyond the last ones wanted; it is clipped to the picture. Fancy
// upsampling and filters that look at neighbours are asked for by a larger rectangle. At `eighths` / 8 of the size,
// rounded up, all pixels are those of the smaller picture; its planes are those of libjpeg with scale_num = eighths.
#pragma once

#include <millrace/image/baseline/jpeg_planes.hpp>
#include <millrace/image/baseline/scan_header.hpp>

#include <cstddef>
#include <limits>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI {
namespace detail {

/// Of a picture's side, at so many eighths of the size: rounded up, as libjpeg does.
template <class Length>
constexpr Length at_eighths(Length length, Length eighths) noexcept {
  return (length * eighths + 7) / 8;
}

}  // namespace detail

struct jpeg_planes_request {
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

  std::span<const std::byte> bytes{};
  std::size_t left = 0, top = 0, right = all, bottom = all;
  int eighths = 8;   ///< 1, 2, 4 or 8; any other is refused
};

/// What became of a request.
struct jpeg_planes_result {
  jpeg_refusal refusal = jpeg_refusal::none;
  jpeg_planes planes{};   ///< nothing in it unless refusal is none

  explicit operator bool() const noexcept { return refusal == jpeg_refusal::none; }
};

}}  // namespace millrace
