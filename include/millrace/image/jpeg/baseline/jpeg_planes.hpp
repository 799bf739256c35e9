// The decoded samples of a JPEG's components (luma and chroma), before chroma upsampling and color conversion.
//
//   const mr::detail::jpeg_planes& p = result.planes;      // the planes of a region
//   const mr::detail::plane_view &y = p.component[0], &cb = p.component[1];
//   auto luma = y.data[row * y.stride_bytes + column];     // luma of pixel (p.left + column, p.top + row)
//   auto blue = cb.data[0];                                // chroma begins at p.left / p.horizontal_sampling
//
// Shapes: samples are u8. Width and height count only samples that belong to the image, without the padding of
// incomplete coding units.
// Lifetime: the planes are views. The function that returns them documents how long they are valid.
#pragma once

#include <millrace/base/limits.hpp>
#include <millrace/base/version.hpp>
#include <millrace/image/jpeg/baseline/jpeg_entry.hpp>
#include <millrace/image/jpeg/baseline/scan_header.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// One component's samples, `[height, width] u8`, row by row.
struct plane_view {
  const std::uint8_t* data = nullptr;
  std::size_t stride_bytes = 0;
  int width = 0, height = 0;   ///< valid samples of this component, clipped to the image
};

/// The planes of a region of an image: one for gray, three for Y, Cb and Cr.
struct jpeg_planes {
  plane_view component[3];
  int components = 0;                                   ///< 1 (gray) or 3 (Y, Cb, Cr)
  int horizontal_sampling = 1, vertical_sampling = 1;   ///< luma samples per chroma sample: 1 or 2
  int left = 0, top = 0;                                ///< luma pixel at the region's origin
  int image_width = 0, image_height = 0;                ///< size of the decoded image
  bool repeats_chroma = false;                          ///< whether chroma is repeated instead of interpolated
};

// Defines a request to the built-in JPEG decoder, and its result.
// Units: the rectangle is in luma pixels, [left, right) x [top, bottom), and is clipped to the image. A caller that
// also reads neighboring pixels, for example for interpolation, must request a larger rectangle. If `eighths` is below
// 8, all coordinates refer to pixels of the smaller image. The planes equal the planes of libjpeg with scale_num =
// eighths.

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
  int eighths = 8;                              ///< decoding size in eighths: 1, 2, 4 or 8; other values are refused
  std::span<const std::byte> entries{};         ///< result of jpeg_entries() for these bytes; may be empty
  int max_scans = picture_limits{}.max_scans;   ///< limit for a progressive JPEG; files with more scans are refused
  /// Limit for a progressive JPEG; files for which libjpeg needs more memory are refused.
  std::size_t max_memory_bytes = picture_limits{}.max_memory_bytes;
};

/// The planes, or the reason why the decoder refused the file.
struct jpeg_planes_result {
  jpeg_refusal refusal = jpeg_refusal::none;
  jpeg_planes planes{};                        ///< empty unless refusal is none
  entry_origin entries = entry_origin::none;   ///< kind of the entries that were used to skip MCUs
  bool entries_refused = false;                ///< whether the passed entries belong to another file

  explicit operator bool() const noexcept { return refusal == jpeg_refusal::none; }
};

}}}   // namespace millrace::detail
