// Erases a random box of an image's values, as timm's and torchvision's RandomErasing do after normalization.
//
//   const mr::random_erase_options as_timm{.probability = 0.25, .fill = mr::erase_fill::noise};     // mode 'pixel'
//   const mr::random_erase_options as_torchvision{.scale_max = 0.33, .ratio_max = 3.3};
//   const mr::detail::erased_box box = mr::detail::random_erase_box({.width = 224, .height = 224}, random, as_timm);
//   box.erase(numbers, {.width = 224, .height = 224});       // f16 [3, 224, 224]
//
// The rule has up to ten attempts. Each attempt draws a uniform share of the area and a log-uniform ratio height /
// width. If the box is smaller than the image in both dimensions, the attempt succeeds, and draws a uniformly random
// position. If all attempts fail, nothing is erased. The box is computed with integers, as in
// image/plan/random_crop.hpp. Noise is approximately normal with variance 1. The same random numbers produce the same
// noise on every machine.
// Source: timm/data/random_erasing.py, torchvision/transforms/v2/_augment.py.
// Errors: setup_error if an option is outside its range. Threads: any thread; do not share an rng between threads.
#pragma once

#include <millrace/base/half.hpp>
#include <millrace/image/plan/random_crop.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

/// The content of an erased box: zeros or normal noise. After normalization, zero is the mean color.
enum class erase_fill : std::uint8_t { zero, noise };

/// Options of normalized_picture::random_erase(). The defaults are timm's.
struct random_erase_options {
  double probability = 0.5;     ///< probability of erasing
  double scale_min = 0.02;      ///< minimum area, as a fraction of the image's area; 0 < scale_min <= scale_max
  double scale_max = 1.0 / 3;   ///< maximum area, as a fraction of the image's area; at most 1
  double ratio_min = 0.3;       ///< minimum height / width; 1/1024 <= ratio_min <= ratio_max
  double ratio_max = 1 / 0.3;   ///< maximum height / width; at most 1024
  erase_fill fill = erase_fill::zero;
};

namespace detail {

/// Returns the number at `index` of a sequence of approximately normal numbers with variance 1. The random number `key`
/// selects the sequence.
inline float normal_noise(std::uint64_t key, std::uint64_t index) noexcept {
  const std::uint64_t bits = mix_bits(key + 0x9e3779b97f4a7c15U * (index + 1));
  const auto ones = static_cast<std::int32_t>(std::popcount(bits >> 16));
  const auto fraction = static_cast<std::int32_t>(bits & 0xffff);
  const std::int32_t twice = 2 * (ones * 65'536 + fraction) - (48 * 65'536 + 65'535);   // symmetric about 0
  return static_cast<float>(twice) * 2.1948088e-06F;   // 1 / (2^17 sqrt(12 + 1/12)), for variance 1
}

/// A box to erase in an image's values.
struct erased_box {
  crop_box box{};   ///< empty if nothing is erased
  erase_fill fill = erase_fill::zero;
  std::uint64_t noise_key = 0;

  /// Fills the box in each plane. `numbers` contains the three planes (red, green, blue), each of `size`.
  template <training_element T>
  void erase(std::span<T> numbers, picture_size size) const noexcept {
    std::uint64_t index = 0;
    for (std::size_t plane = 0; box.width > 0 && plane < 3; ++plane)
      for (std::size_t y = 0; y < box.height; ++y) {
        T* const line = numbers.data() + (plane * size.height + box.top + y) * size.width + box.left;
        if (fill == erase_fill::zero) std::fill_n(line, box.width, T{});
        else
          for (std::size_t x = 0; x < box.width; ++x) line[x] = half_element<T>(normal_noise(noise_key, index++));
      }
  }
};

/// Draws a box to erase. Throws setup_error if an option is outside its range.
erased_box random_erase_box(picture_size size, rng& random, const random_erase_options& options);

}   // namespace detail

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>

#ifndef MILLRACE_COMPILED
#include <millrace/image/plan/impl/random_erase.inl>
#endif
