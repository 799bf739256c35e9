// Pillow's Gaussian blur, in place: three passes of a box filter along rows, then three along columns. A box filter
// replaces each byte by the mean of the bytes around it. The two bytes at the ends of the box have a lower weight.
//
//   const auto weights = mr::detail::box_weights_of(1.5);     // sigma; Pillow's `radius`
//   mr::detail::box_blur<mr::detail::portable_boxes> blur;    // reused for all images
//   blur.run(pixels, weights);
//
// Beyond the image's boundary, the outermost bytes are repeated. Each pass rounds to bytes, as Pillow does. The cost
// does not depend on the radius. For passes along rows, the pixels of ten rows are interleaved, so that both directions
// use the same kernel.
// Source: Gwosdek, Grewenig, Bruhn, Weickert: Theoretical Foundations of Gaussian Convolution by Extended Box
// Filtering, SSVM 2011; the arithmetic is Pillow's.
#pragma once

#include <millrace/image/color/rgb_pixels.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The weights of a box filter, with 24 fraction bits.
struct box_weights {
  std::size_t radius = 0;
  std::uint32_t inside = 1U << 24, end = 0;   ///< weights of bytes inside the box, and of the two end bytes

  bool changes_nothing() const noexcept { return radius == 0 && end == 0; }
};

/// Returns the weights for three passes that approximate a Gaussian with this sigma, 0 to 1000. Every value is rounded
/// as in Pillow.
inline box_weights box_weights_of(double sigma) noexcept {
  const auto s = static_cast<float>(sigma);
  const float variance = s * s / 3;   // of one pass
  const auto length = static_cast<float>(std::sqrt(12.0 * variance + 1.0));
  const auto radius = static_cast<float>(std::floor((length - 1.0) / 2.0));
  const float thrice = static_cast<float>(3.0 * variance);   // exact, so a fused multiply-add has the same result
  float part = (2 * radius + 1) * (radius * (radius + 1) - thrice);
  part /= 6 * (variance - (radius + 1) * (radius + 1));
  const float extended = radius + part;
  if (extended == 0) return {};
  box_weights weights;
  weights.radius = static_cast<std::size_t>(extended);
  weights.inside = static_cast<std::uint32_t>(16'777'216.0F / (extended * 2 + 1));
  weights.end = ((1U << 24) - static_cast<std::uint32_t>(2 * weights.radius + 1) * weights.inside) / 2;
  return weights;
}

/// One pass over `count` groups of bytes. The memory must contain radius + 1 additional groups at each end.
struct box_pass {
  static constexpr std::size_t lanes = 32;   ///< bytes in a group; each byte has its own sum

  const std::uint8_t* from;
  std::uint8_t* to;
  std::size_t count;
  box_weights weights;
};

struct portable_boxes {
  static void run(const box_pass& pass) noexcept {
    constexpr std::size_t lanes = box_pass::lanes;
    const auto reach = static_cast<std::ptrdiff_t>((pass.weights.radius + 1) * lanes);
    std::uint32_t sums[lanes] = {};   // sums of the box around the group before `from`
    for (std::ptrdiff_t i = -reach; i < reach - static_cast<std::ptrdiff_t>(lanes); ++i)
      sums[static_cast<std::size_t>(i + reach) % lanes] += pass.from[i];
    for (std::size_t i = 0; i < pass.count; ++i) {
      const std::uint8_t* const before = pass.from + i * lanes - reach;
      const std::uint8_t* const last = pass.from + i * lanes + reach - lanes;
      for (std::size_t k = 0; k < lanes; ++k) {
        sums[k] += std::uint32_t{last[k]} - before[k];
        const std::uint32_t ends = std::uint32_t{before[k]} + last[lanes + k];
        pass.to[i * lanes + k] = static_cast<std::uint8_t>(
            (sums[k] * pass.weights.inside + ends * pass.weights.end + (1U << 23)) >> 24);
      }
    }
  }
};

template <class Kernels>
class box_blur {
 public:
  void run(const rgb_pixels& p, const box_weights& weights) {
    if (weights.changes_nothing() || p.count() == 0) return;
    for (std::size_t y = 0; y < p.height; y += rows_at_once) {
      const std::size_t rows = std::min(rows_at_once, p.height - y);
      start(p.width, weights);
      gather_rows(p, y, rows);
      run_passes();
      scatter_rows(p, y, rows);
    }
    for (std::size_t i = 0; i < p.row_bytes(); i += lanes) {
      const std::size_t bytes = std::min(lanes, p.row_bytes() - i);
      start(p.height, weights);
      for (std::size_t y = 0; y < p.height; ++y) std::memcpy(first_ + y * lanes, p.row(y) + i, bytes);
      run_passes();
      for (std::size_t y = 0; y < p.height; ++y) std::memcpy(p.row(y) + i, second_ + y * lanes, bytes);
    }
  }

 private:
  static constexpr std::size_t lanes = box_pass::lanes, rows_at_once = lanes / 3, passes = 3;

  void start(std::size_t count, const box_weights& weights) {
    count_ = count;
    weights_ = weights;
    const std::size_t margin = (weights.radius + 1) * lanes, bytes = count * lanes + 2 * margin;
    if (memory_.size() < 2 * bytes) memory_.resize(2 * bytes);
    first_ = memory_.data() + margin;
    second_ = first_ + bytes;
  }

  /// Copies four bytes per pixel, but three for the last pixel. The fourth byte is overwritten or unused.
  void gather_rows(const rgb_pixels& p, std::size_t y, std::size_t rows) noexcept {
    for (std::size_t k = 0; k < rows; ++k) {
      const std::uint8_t* const row = p.row(y + k);
      for (std::size_t x = 0; x + 1 < p.width; ++x) std::memcpy(first_ + x * lanes + 3 * k, row + 3 * x, 4);
      std::memcpy(first_ + (p.width - 1) * lanes + 3 * k, row + 3 * (p.width - 1), 3);
    }
  }
  void scatter_rows(const rgb_pixels& p, std::size_t y, std::size_t rows) const noexcept {
    for (std::size_t k = 0; k < rows; ++k) {
      std::uint8_t* const row = p.row(y + k);
      for (std::size_t x = 0; x + 1 < p.width; ++x) std::memcpy(row + 3 * x, second_ + x * lanes + 3 * k, 4);
      std::memcpy(row + 3 * (p.width - 1), second_ + (p.width - 1) * lanes + 3 * k, 3);
    }
  }

  /// Runs the three passes; the result is in second_.
  void run_passes() noexcept {
    for (std::size_t pass = 0; pass < passes; ++pass) {
      std::uint8_t* const from = pass % 2 == 0 ? first_ : second_;
      repeat_ends(from);
      Kernels::run({.from = from, .to = pass % 2 == 0 ? second_ : first_, .count = count_, .weights = weights_});
    }
  }

  void repeat_ends(std::uint8_t* from) const noexcept {
    std::uint8_t* const last = from + (count_ - 1) * lanes;
    for (std::size_t i = 1; i <= weights_.radius + 1; ++i) {
      std::memcpy(from - i * lanes, from, lanes);
      std::memcpy(last + i * lanes, last, lanes);
    }
  }

  std::vector<std::uint8_t> memory_;
  std::uint8_t *first_ = nullptr, *second_ = nullptr;
  std::size_t count_ = 0;
  box_weights weights_;
};

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
