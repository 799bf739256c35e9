// Sharpness: blends pixels with a smoothed image, in place.
//
//   mr::detail::sharpen<mr::detail::portable_sharpening>(pixels, 1.9F, memory);   // a factor below 1 smooths
//
// A smoothed byte is the rounded, weighted mean of 3 x 3 bytes of the same channel. The center has a weight of 5, the
// other bytes have a weight of 1. Pixels at the boundary are not changed.
// `memory` grows to two rows and is reused. Errors: throws std::bad_alloc.
// Threads: any thread. Concurrent calls must not use the same pixels or the same `memory`.
#pragma once

#include <millrace/image/color/byte_table.hpp>
#include <millrace/image/color/rgb_pixels.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Three rows. The new bytes of the middle row are written to `out`, which must not be one of the three rows.
struct sharpened_row {
  const std::uint8_t *above, *here, *below;
  std::uint8_t* out;
  std::size_t begin, end;   ///< bytes to compute; both neighbors of each pixel must exist
  float factor;
};

struct portable_sharpening {
  static void run(const sharpened_row& r) noexcept {
    for (std::size_t i = r.begin; i < r.end; ++i) {
      int sum = 4 * r.here[i];
      for (const std::uint8_t* const row : {r.above, r.here, r.below}) sum += row[i - 3] + row[i] + row[i + 3];
      r.out[i] = blended((2 * sum + 13) / 26, r.here[i], r.factor);
    }
  }
};

template <class Kernels>
void sharpen(const rgb_pixels& p, float factor, std::vector<std::uint8_t>& memory) {
  if (p.width < 3 || p.height < 3) return;
  const std::size_t bytes = p.row_bytes();
  if (memory.size() < 2 * bytes) memory.resize(2 * bytes);
  // Rows are changed from top to bottom. The row above is already overwritten, so copies of two rows are needed.
  std::uint8_t *above = memory.data(), *here = above + bytes;
  std::memcpy(above, p.row(0), bytes);
  for (std::size_t y = 1; y + 1 < p.height; ++y) {
    std::memcpy(here, p.row(y), bytes);
    Kernels::run({.above = above,
                  .here = here,
                  .below = p.row(y + 1),
                  .out = p.row(y),
                  .begin = 3,
                  .end = bytes - 3,
                  .factor = factor});
    std::uint8_t* const next = above;
    above = here;
    here = next;
  }
}

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
