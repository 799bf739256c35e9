// A blur with a Gaussian kernel of k x k pixels, in place, as torchvision has it: within one level of its result.
//
//   const auto weights = mr::detail::gaussian_weights_of(9, 1.2);     // k and sigma
//   mr::detail::gaussian_blur<mr::detail::portable_gaussian> blur;    // kept from picture to picture
//   blur.run(pixels, weights);
//
// torchvision sums k * k products in float, in an order of its own. Here the kernel is the same, in integers: weights
// with 15 fraction bits that sum to 1, first along columns to 6 fraction bits, then along rows, each to nearest.
// Beyond the border the picture is mirrored, without its outermost pixels again. A picture smaller than half of the
// kernel is mirrored more than once.
// Errors: throws std::bad_alloc. Threads: one at a time for each object.
#pragma once

#include <millrace/base/fixed_point.hpp>
#include <millrace/image/color/rgb_pixels.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Weights of the middle and of those 1, 2, ... away from it on both sides, with 15 fraction bits. Empty: nothing
/// changes. An odd number of weights gets a 0 at the end.
using gaussian_weights = std::vector<std::int16_t>;

/// `size` is odd, `sigma` above 0.
inline gaussian_weights gaussian_weights_of(std::size_t size, double sigma) {
  constexpr std::int64_t one = 32'768;
  const std::size_t half = size / 2;
  const double unit = 0.72134752044448170368 / (sigma * sigma);   // log2(e) / 2: at distance d it is 2^-(unit d d)
  std::vector<std::uint64_t> upto(half + 2, 0);                    // sums from the outermost on
  std::uint64_t total = std::uint64_t{1} << 32;
  for (std::size_t d = half; d > 0; --d) {
    const double exponent = unit * static_cast<double>(d * d);
    const std::uint64_t value = exponent < 32 ? fixed_exp2(-static_cast<std::int64_t>(to_fixed(exponent))) : 0;
    upto[d] = upto[d + 1] + value;
    total += 2 * value;
  }
  const auto share = [&](std::uint64_t sum) { return static_cast<std::int64_t>((sum * one + total / 2) / total); };
  // Sums are rounded, not weights, so that no errors add up.
  gaussian_weights weights(half + 1);
  for (std::size_t d = half; d > 0; --d) weights[d] = static_cast<std::int16_t>(share(upto[d]) - share(upto[d + 1]));
  const std::int64_t middle = one - 2 * share(upto[1]);
  if (middle == one) return {};
  weights[0] = static_cast<std::int16_t>(middle);
  if (weights.size() % 2 != 0) weights.push_back(0);
  return weights;
}

/// A line of results. Along columns it reads bytes of rows; along rows it reads the sums before and after its own.
struct gaussian_line {
  const gaussian_weights& weights;
  const std::uint8_t* const* rows = nullptr;   ///< row d above is rows[-d], row d below is rows[d]
  const std::int16_t* sums = nullptr;          ///< of the line's first result; pixel d away is 3 d away
  std::size_t count = 0;                       ///< bytes
};

struct portable_gaussian {
  static void down(const gaussian_line& line, std::int16_t* out) noexcept {
    for (std::size_t i = 0; i < line.count; ++i) {
      std::int32_t sum = line.weights[0] * line.rows[0][i] + (1 << 8);
      for (std::ptrdiff_t d = 1; d < static_cast<std::ptrdiff_t>(line.weights.size()); ++d)
        sum += line.weights[static_cast<std::size_t>(d)] * (line.rows[-d][i] + line.rows[d][i]);
      out[i] = static_cast<std::int16_t>(sum >> 9);
    }
  }
  static void across(const gaussian_line& line, std::uint8_t* out) noexcept {
    for (std::size_t i = 0; i < line.count; ++i) {
      const std::int16_t* const at = line.sums + i;
      std::int32_t sum = line.weights[0] * at[0] + (1 << 20);
      for (std::ptrdiff_t d = 1; d < static_cast<std::ptrdiff_t>(line.weights.size()); ++d)
        sum += line.weights[static_cast<std::size_t>(d)] * (at[-3 * d] + at[3 * d]);
      out[i] = static_cast<std::uint8_t>(sum >> 21);
    }
  }
};

template <class Kernels>
class gaussian_blur {
 public:
  void run(const rgb_pixels& p, const gaussian_weights& weights) {
    if (weights.empty() || p.count() == 0) return;
    const std::size_t reach = weights.size() - 1, bytes = p.row_bytes();
    source_.assign(p.data, p.data + p.bytes());
    source_.resize(p.bytes() + slack);
    rows_.resize(2 * reach + 1);
    sums_.resize(bytes + 6 * reach + slack);
    made_.resize(bytes + slack);
    for (std::size_t y = 0; y < p.height; ++y) {
      for (std::size_t k = 0; k < rows_.size(); ++k)
        rows_[k] = source_.data() + mirrored(y + k, reach, p.height) * bytes;
      std::int16_t* const sums = sums_.data() + 3 * reach;
      Kernels::down({.weights = weights, .rows = rows_.data() + reach, .count = bytes}, sums);
      for (std::size_t k = 0; k < reach; ++k) {
        std::memcpy(sums_.data() + 3 * k, sums + 3 * mirrored(k, reach, p.width), 3 * sizeof *sums);
        std::memcpy(sums + bytes + 3 * k, sums + 3 * mirrored(p.width + k + reach, reach, p.width), 3 * sizeof *sums);
      }
      Kernels::across({.weights = weights, .sums = sums, .count = bytes}, made_.data());
      std::memcpy(p.row(y), made_.data(), bytes);
    }
  }

 private:
  static constexpr std::size_t slack = 32;   ///< kernels may read and write that many elements beyond the end

  /// Returns the place of at - reach in 0..count - 1, mirrored as often as is needed.
  static std::size_t mirrored(std::size_t at, std::size_t reach, std::size_t count) noexcept {
    if (at >= reach && at - reach < count) return at - reach;
    if (count == 1) return 0;
    const std::size_t period = 2 * (count - 1);
    const std::size_t place = (at + (reach / period + 1) * period - reach) % period;
    return place < count ? place : period - place;
  }

  std::vector<std::uint8_t> source_, made_;
  std::vector<const std::uint8_t*> rows_;
  std::vector<std::int16_t> sums_;
};

}}}  // namespace millrace::detail
