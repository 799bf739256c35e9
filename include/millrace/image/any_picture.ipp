// Defines what any_picture.hpp declares.
#pragma once

#include <millrace/image/any_picture.hpp>

#include <millrace/image/png.hpp>
#include <millrace/image/pnm.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE picture any_picture(bytes data, const any_picture_options& options) {
  if (options.also && options.also->takes(data)) return options.also->read(std::move(data), options.jpeg);
  if (detail::is_pnm(data)) return pnm(std::move(data), {.max_pixels = options.jpeg.max_pixels});
  if (detail::is_png(data))
    return png(std::move(data), {.apply_orientation = options.jpeg.apply_orientation,
                                 .max_pixels = options.jpeg.max_pixels});
  return jpeg(std::move(data), options.jpeg);   // whose error names the formats that are not read
}

}}  // namespace millrace
