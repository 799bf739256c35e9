// Defines a request to the built-in JPEG decoder, and its result.
//
//   mr::detail::jpeg_planes_request request{.bytes = file, .left = 60, .top = 40, .right = 300, .bottom = 200};
//   mr::detail::jpeg_planes_result result = decoder.decode(request);     // see jpeg_plane_decoder.hpp
//   if (!result) by_libjpeg(request, result.refusal);                    // `refusal` is the reason
//
// Units: the rectangle is in luma pixels, [left, right) x [top, bottom), and is clipped to the image. A caller that
// uses "fancy" chroma upsampling, or a filter that reads neighbors, must request a larger rectangle. With `eighths` < 8
// the image is decoded at eighths / 8 of its size, rounded up, and all coordinates refer to pixels of this smaller
// image. The planes equal the planes of libjpeg with scale_num = eighths.
#pragma once

#include <millrace/base/limits.hpp>
#include <millrace/image/jpeg/baseline/jpeg_entry.hpp>
#include <millrace/image/jpeg/baseline/jpeg_planes.hpp>
#include <millrace/image/jpeg/baseline/scan_header.hpp>

#include <cstddef>
#include <limits>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the length of an image's side at `eighths` / 8 of its size, rounded up as libjpeg does.
template <class Length>
constexpr Length at_eighths(Length length, Length eighths) noexcept {
  return (length * eighths + 7) / 8;
}

/// A JPEG file, and the rectangle to decode. The default is the full image at full size.
struct jpeg_planes_request {
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

  std::span<const std::byte> bytes{};
  std::size_t left = 0, top = 0, right = all, bottom = all;   ///< luma pixels
  int eighths = 8;   ///< decoding size in eighths: 1, 2, 4 or 8; other values are refused
  std::span<const std::byte> entries{};   ///< result of jpeg_entries() for these bytes; may be empty
  int max_scans = picture_limits{}.max_scans;   ///< limit for a progressive JPEG; files with more scans are refused
  std::size_t max_memory_bytes = picture_limits{}.max_memory_bytes;   ///< limit for libjpeg's memory
};

/// The planes, or the reason why the decoder refused the file.
struct jpeg_planes_result {
  jpeg_refusal refusal = jpeg_refusal::none;
  jpeg_planes planes{};   ///< empty unless refusal is none
  entry_origin entries = entry_origin::none;   ///< kind of the entries that were used to skip MCUs
  bool entries_refused = false;                ///< whether the passed entries do not belong to this file

  explicit operator bool() const noexcept { return refusal == jpeg_refusal::none; }
};

}}}  // namespace millrace::detail
