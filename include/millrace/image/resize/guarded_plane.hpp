// A plane in which vector loads may read a few bytes beyond the end of a row, even at the end of the plane's memory.
//
//   mr::detail::guarded_plane p;                 // reused for all images
//   p.set(planes.component[0]);
//   const std::uint8_t* row = p.row(y);          // guarded_plane::slack_bytes more are readable; y is clamped
//
// A row that is followed by enough memory of the plane is returned in place. The other rows, at the end of the plane,
// are copied. If the stride exceeds slack_bytes, only the last row is copied. Errors: none. Threads: not thread-safe;
// one thread at a time. Lifetime: rows are valid as long as the plane.
#pragma once

#include <millrace/image/jpeg/baseline/jpeg_planes.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class guarded_plane {
 public:
  static constexpr std::size_t slack_bytes = 64;

  /// Sets the plane, which must have at least one sample.
  void set(const plane_view& plane) {
    plane_ = plane;
    const auto height = static_cast<std::size_t>(plane.height), width = static_cast<std::size_t>(plane.width);
    const std::size_t copies = plane.stride_bytes == 0 ? height : slack_bytes / plane.stride_bytes + 1;
    first_copy_ = height - std::min(copies, height);
    copy_stride_ = width + slack_bytes;
    copied_.resize(std::max(copied_.size(), (height - first_copy_) * copy_stride_));
    for (std::size_t y = first_copy_; y < height; ++y)
      std::memcpy(copied_.data() + (y - first_copy_) * copy_stride_, plane.data + y * plane.stride_bytes, width);
  }

  std::size_t width() const noexcept { return static_cast<std::size_t>(plane_.width); }
  std::size_t height() const noexcept { return static_cast<std::size_t>(plane_.height); }

  const std::uint8_t* row(std::size_t y) const noexcept {
    y = std::min(y, height() - 1);
    return y < first_copy_ ? plane_.data + y * plane_.stride_bytes : copied_.data() + (y - first_copy_) * copy_stride_;
  }

  /// Returns row(y) and the three rows below it.
  std::array<const std::uint8_t*, 4> four_rows(std::size_t y) const noexcept {
    if (y + 4 > first_copy_) return {row(y), row(y + 1), row(y + 2), row(y + 3)};
    const std::uint8_t* const first = plane_.data + y * plane_.stride_bytes;
    return {first, first + plane_.stride_bytes, first + 2 * plane_.stride_bytes, first + 3 * plane_.stride_bytes};
  }

 private:
  plane_view plane_;
  std::size_t first_copy_ = 0, copy_stride_ = 0;
  std::vector<std::uint8_t> copied_;
};

}}}  // namespace millrace::detail
