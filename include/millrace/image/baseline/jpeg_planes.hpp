// The samples of a JPEG's components as they are stored, before chroma is upsampled and colours are converted.
//
//   mr::jpeg_planes p = ...;                                     // of a region, see jpeg_plane_decoder.hpp
//   const mr::plane_view& y = p.component[0];
//   y.data[row * y.stride_bytes + column];                       // luma of pixel (p.left + column, p.top + row)
//   p.component[1].data[...];                                    // chroma begins at p.left / p.horizontal_sampling
//
// Shapes: samples are u8; width and height count those that belong to the picture, so the last ones are its border
// where the region reaches it. Lifetime: views; whoever made them says how long they are good.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// One component's samples, row by row.
struct plane_view {
  const std::uint8_t* data = nullptr;
  std::size_t stride_bytes = 0;
  int width = 0, height = 0;   ///< samples of this component that are valid, clipped to the picture
};

struct jpeg_planes {
  plane_view component[3];
  int components = 0;                                    ///< 1 (gray) or 3 (Y, Cb, Cr)
  int horizontal_sampling = 1, vertical_sampling = 1;    ///< luma samples for one of chroma: 1 or 2
  int left = 0, top = 0;                                 ///< luma pixel of the region's origin
  int image_width = 0, image_height = 0;                 ///< as decoded
  bool repeats_chroma = false;                           ///< upsampling repeats samples, as libjpeg's does at 1/8
};

}}  // namespace millrace
