// The samples of a JPEG as they are stored, one plane per component, for a region of the picture: what a decoder gives
// and a resizer takes.
//
//   mr::detail::jpeg_planes p;
//   p.component[0].data[y * p.component[0].stride_bytes + x];   // luma of pixel (p.left + x, p.top + y)
//   p.component[1];                                             // blue difference, 1 / horizontal_sampling as wide
//
// Units: samples of 8 bits. A plane's width and height count the samples that lie in the region and in the picture; no
// byte beyond them may be read or is promised. Errors: none. Threads: a view; the decoder owns the memory.
// Format: ITU-T T.81, A.1.1 (sampling factors).
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace::inline MILLRACE_ABI::detail {

struct plane_view {
  const std::uint8_t* data = nullptr;
  std::size_t stride_bytes = 0;
  int width = 0, height = 0;
};

struct jpeg_planes {
  plane_view component[3];
  int components = 0;                                     ///< 1 or 3
  int horizontal_sampling = 1, vertical_sampling = 1;     ///< of chroma: 1 or 2
  int left = 0, top = 0;                                  ///< luma pixel of the region's origin, multiple of the MCU's
  int image_width = 0, image_height = 0;
};

}  // namespace millrace::inline MILLRACE_ABI::detail
