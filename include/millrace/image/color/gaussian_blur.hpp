// torchvision's blur with a Gaussian kernel of k x k pixels, in place. The result differs by at most 1 from
// torchvision's.
//
//   const auto weights = mr::detail::gaussian_weights_of(9, 1.2);     // k and sigma
//   mr::detail::gaussian_blur<mr::detail::portable_gaussian> blur;    // reused for all images
//   blur.run(pixels, weights);
//
// Computes in integers, first along rows, then along columns. torchvision sums all k * k products in float. Beyond the
// boundary, the image is mirrored without repeating its outermost pixels. A small image is mirrored several times.
// Errors: throws std::bad_alloc. Threads: not thread-safe; one thread at a time.
#pragma once

#include <millrace/base/aligned_allocator.hpp>
#include <millrace/base/fixed_point.hpp>
#include <millrace/image/color/rgb_pixels.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Weights with 15 fraction bits: the weight of the center, then the weights at distances of 1, 2, ... pixels. An empty
/// vector means that the blur changes nothing.
using gaussian_weights = std::vector<std::int16_t>;

/// Returns the weights of a kernel of `size` pixels. `size` must be odd, and `sigma` must be above 0.
inline gaussian_weights gaussian_weights_of(std::size_t size, double sigma) {
  constexpr std::int64_t one = 32'768;
  const std::size_t half = size / 2;
  const double unit = 0.72134752044448170368 / (sigma * sigma);   // weight at distance d: 2^-(unit * d * d)
  std::vector<std::uint64_t> upto(half + 2, 0);                   // sums from the outermost sample inwards
  std::uint64_t total = std::uint64_t{1} << 32;
  for (std::size_t d = half; d > 0; --d) {
    const double exponent = unit * static_cast<double>(d * d);
    const std::uint64_t value = exponent < 32 ? fixed_exp2(-static_cast<std::int64_t>(to_fixed(exponent))) : 0;
    upto[d] = upto[d + 1] + value;
    total += 2 * value;
  }
  const auto share = [&](std::uint64_t sum) { return static_cast<std::int64_t>((sum * one + total / 2) / total); };
  // Sums are rounded instead of weights, so that rounding errors do not accumulate.
  gaussian_weights weights(half + 1);
  for (std::size_t d = half; d > 0; --d) weights[d] = static_cast<std::int16_t>(share(upto[d]) - share(upto[d + 1]));
  const std::int64_t middle = one - 2 * share(upto[1]);
  if (middle == one) return {};
  weights[0] = static_cast<std::int16_t>(middle);
  return weights;
}

/// The results of across(), the pass along rows, for 32 pixels of three bytes. Each implementation of the kernels
/// chooses the order of the results. Kernels compute only complete blocks.
struct alignas(64) gaussian_block {
  static constexpr std::size_t size = 96;
  std::array<std::int16_t, size> results;
};

/// The input for one line of results. Kernels along rows read `samples`; kernels along columns read `rows`.
struct gaussian_line {
  const gaussian_weights& weights;
  const std::int8_t* samples = nullptr;   ///< sample of the first result; adjacent pixels are three samples apart
  const gaussian_block* const* rows = nullptr;   ///< row d above is rows[-d], row d below is rows[d]
  std::size_t blocks = 0;
};

struct portable_gaussian {
  static void center(const std::uint8_t* from, std::size_t count, std::int8_t* to) noexcept {
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::int8_t>(from[i] - 128);
  }
  static void across(const gaussian_line& line, gaussian_block* out) noexcept {
    const std::int8_t* at = line.samples;
    for (std::size_t i = 0; i < line.blocks; ++i)
      for (std::int16_t& result : out[i].results) {
        result = static_cast<std::int16_t>(
            summed(line.weights, at[0] * 128, [&](std::ptrdiff_t d) { return (at[-3 * d] + at[3 * d]) * 128; }));
        ++at;
      }
  }
  static void down(const gaussian_line& line, std::uint8_t* out) noexcept {
    for (std::size_t i = 0; i < line.blocks; ++i)
      for (std::size_t k = 0; k < gaussian_block::size; ++k) {
        const auto at = [&](std::ptrdiff_t d) -> std::int32_t { return line.rows[d][i].results[k]; };
        const std::int32_t sum = summed(line.weights, at(0), [&](std::ptrdiff_t d) { return at(-d) + at(d); });
        *out++ = static_cast<std::uint8_t>(std::clamp((sum + 64) >> 7, -128, 127) + 128);
      }
  }

 private:
  /// Returns the weighted sum. pair_at(d) returns the sum of the two samples at distance d.
  template <class PairAt>
  static std::int32_t summed(const gaussian_weights& weights, std::int32_t middle, const PairAt& pair_at) noexcept {
    const auto product = [](std::int32_t sample, std::int32_t weight) { return (sample * weight + (1 << 14)) >> 15; };
    std::int32_t sum = product(middle, weights[0]);
    // Rounding can push the sum of two black results just below the range of 16 bits.
    for (std::size_t d = 1; d < weights.size(); ++d)
      sum += product(std::max(-32'768, pair_at(static_cast<std::ptrdiff_t>(d))), weights[d]);
    return sum;
  }
};

template <class Kernels>
class gaussian_blur {
 public:
  void run(const rgb_pixels& p, const gaussian_weights& weights) {
    if (weights.empty() || p.count() == 0) return;
    const std::size_t reach = weights.size() - 1, bytes = p.row_bytes();
    const std::size_t blocks = (bytes + gaussian_block::size - 1) / gaussian_block::size;
    const std::size_t ring_rows = std::bit_ceil(2 * reach + 1);   // a power of two, because results() masks row numbers
    samples_.resize(gaussian_block::size * blocks + 6 * reach);
    blocks_.resize(ring_rows * blocks);
    rows_.resize(2 * reach + 1);
    output_.resize(gaussian_block::size * blocks);
    const auto results = [&](std::size_t y) { return blocks_.data() + (y & (ring_rows - 1)) * blocks; };
    for (std::size_t y = 0, read = 0; y < p.height; ++y) {
      for (; read < std::min(y + reach + 1, p.height); ++read) {
        std::int8_t* const samples = samples_.data() + 3 * reach;
        Kernels::center(p.row(read), bytes, samples);
        for (std::size_t k = 0; k < reach; ++k) {
          std::memcpy(samples_.data() + 3 * k, samples + 3 * mirrored(k, reach, p.width), 3);
          std::memcpy(samples + bytes + 3 * k, samples + 3 * mirrored(p.width + k + reach, reach, p.width), 3);
        }
        Kernels::across({.weights = weights, .samples = samples, .blocks = blocks}, results(read));
      }
      for (std::size_t k = 0; k < rows_.size(); ++k) rows_[k] = results(mirrored(y + k, reach, p.height));
      // Kernels write beyond a row's end into the next row, which has already been read.
      const bool in_place = y + 1 < p.height && bytes >= gaussian_block::size;
      Kernels::down({.weights = weights, .rows = rows_.data() + reach, .blocks = blocks},
                    in_place ? p.row(y) : output_.data());
      if (!in_place) std::memcpy(p.row(y), output_.data(), bytes);
    }
  }

 private:
  /// Returns the index `at - reach`, mirrored into the range from 0 to `count - 1`.
  static std::size_t mirrored(std::size_t at, std::size_t reach, std::size_t count) noexcept {
    if (count == 1) return 0;
    const auto last = static_cast<std::ptrdiff_t>(count - 1);
    auto place = static_cast<std::ptrdiff_t>(at) - static_cast<std::ptrdiff_t>(reach);
    while (place < 0 || place > last) place = place < 0 ? -place : 2 * last - place;
    return static_cast<std::size_t>(place);
  }

  std::vector<std::int8_t> samples_;        ///< samples of one row, minus 128, including mirrored ones
  aligned_vector<gaussian_block> blocks_;   ///< results of across() for recent rows, with 7 fraction bits
  std::vector<const gaussian_block*> rows_;
  std::vector<std::uint8_t> output_;
};

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
