// The pixels of a picture that color operations change in place: u8 RGB, [height, width, 3].
//
//   const mr::detail::rgb_pixels pixels{.data = row.data(), .width = 224, .height = 224};
//   std::uint8_t* second = pixels.row(1);
//
// Units: pixels. It owns nothing. Errors: none. Threads: none.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct rgb_pixels {
  std::uint8_t* data = nullptr;
  std::size_t width = 0, height = 0;

  std::size_t count() const noexcept { return width * height; }
  std::size_t bytes() const noexcept { return 3 * count(); }
  std::size_t row_bytes() const noexcept { return 3 * width; }
  std::uint8_t* row(std::size_t y) const noexcept { return data + y * row_bytes(); }
};

}}}  // namespace millrace::detail
