// Contains the decoded samples of a JPEG's components (luma and chroma), before chroma upsampling and color conversion.
//
//   const mr::detail::jpeg_planes& p = result.planes;      // of a region, see jpeg_planes_request.hpp
//   const mr::detail::plane_view &y = p.component[0], &cb = p.component[1];
//   auto luma = y.data[row * y.stride_bytes + column];     // of pixel (p.left + column, p.top + row)
//   auto blue = cb.data[0];                                // chroma begins at p.left / p.horizontal_sampling
//
// Shapes: samples are u8. Width and height count only samples that belong to the image, without the padding to complete
// coding units. Therefore, if the region extends to the right or lower edge of the image, its last column or row is
// that of the image.
// Lifetime: the planes are views. The function that returns them documents how long they are valid.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>

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
  int components = 0;                                    ///< 1 (gray) or 3 (Y, Cb, Cr)
  int horizontal_sampling = 1, vertical_sampling = 1;    ///< luma samples per chroma sample: 1 or 2
  int left = 0, top = 0;                                 ///< luma pixel at the region's origin
  int image_width = 0, image_height = 0;                 ///< size of the decoded image
  bool repeats_chroma = false;                           ///< whether upsampling repeats samples, as at 1/8 of the size
};

}}}  // namespace millrace::detail
