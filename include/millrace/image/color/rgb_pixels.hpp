// A view of a u8 RGB image, [height, width, 3]. Color operations change its pixels in place.
//
//   const mr::detail::rgb_pixels pixels{.data = row.data(), .width = 224, .height = 224};
//   mr::detail::fill_pixels(pixels.row(1), pixels.width, {124, 116, 104});
//
// Units: pixels. The object does not own the pixels. Errors: none. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

using rgb_color = std::array<std::uint8_t, 3>;

struct rgb_pixels {
  std::uint8_t* data = nullptr;
  std::size_t width = 0, height = 0;

  std::size_t count() const noexcept { return width * height; }
  std::size_t bytes() const noexcept { return 3 * count(); }
  std::size_t row_bytes() const noexcept { return 3 * width; }
  std::uint8_t* row(std::size_t y) const noexcept { return data + y * row_bytes(); }
};

/// Sets `count` pixels, beginning at `to`, to the color.
inline void fill_pixels(std::uint8_t* to, std::size_t count, const rgb_color& color) noexcept {
  for (std::size_t i = 0; i < count; ++i, to += 3) std::memcpy(to, color.data(), 3);
}

}}}   // namespace millrace::detail
