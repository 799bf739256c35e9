// Defines the normalization of pixels for the host and for the GPU kernel: options, factors and checks.
//
//   mr::normalize_options o{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225},
//                           .layout = mr::image_layout::nchw};
//
// Units: mean and std are relative to full scale (0..1), as in torchvision. Only the first C values of each are used.
// Every result is fma(x, scale, bias) in f32, with one rounding. scale is 1 / (255 std) and bias is -mean / std; each
// is computed in f64 and rounded to f32. Results of type f16 or bf16 are then rounded from f32 to nearest even.
// Errors: setup_error if the shapes do not match, a std is not positive, or a mean or std is not finite.
#pragma once

#include <millrace/base/channel_scale.hpp>
#include <millrace/base/half.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

/// The order of the axes: nhwc is [B, H, W, C], nchw is [B, C, H, W].
enum class image_layout : std::uint8_t { nhwc, nchw };

/// Options of normalize().
struct normalize_options {
  std::array<double, 4> mean{};               ///< per channel, relative to full scale (0..1)
  std::array<double, 4> std = {1, 1, 1, 1};   ///< per channel, relative to full scale; above 0
  image_layout layout = image_layout::nhwc;   ///< layout of the result
};

namespace detail {

template <class T>
struct normalize_job {
  const std::uint8_t* in = nullptr;
  T* out = nullptr;
  std::size_t images = 0, pixels = 0, channels = 0;   // pixels: number of pixels in one image
  bool planar = false;                                // result is NCHW
  float scale[4]{}, bias[4]{};                        // C arrays, because kernels cannot index a std::array

  T value(std::uint8_t x, std::size_t channel) const noexcept { return normalized(x, scale[channel], bias[channel]); }
  MILLRACE_BOTH_SIDES static T normalized(std::uint8_t x, float scale, float bias) noexcept {
    return half_element<T>(std::fma(static_cast<float>(x), scale, bias));
  }
};

/// Checks the shapes and computes the factors. The caller checks that the memory is on the correct device.
template <training_element T>
normalize_job<T> plan_normalize(const tensor_view<const std::uint8_t, 4>& pixels, const tensor_view<T, 4>& numbers,
                                const normalize_options& options) {
  const auto [images, height, width, channels] = pixels.shape;
  const bool planar = options.layout == image_layout::nchw;
  const std::array<std::size_t, 4> expected = planar ? std::array{images, channels, height, width}
                                                     : std::array{images, height, width, channels};
  if (channels < 1 || channels > 4)
    throw setup_error("the pixels for normalize have the wrong shape: got " + to_string(pixels.shape),
                      "Pass [B, H, W, 1 to 4]");
  if (numbers.shape != expected)
    throw setup_error("the output of normalize has the wrong shape: got pixels " + to_string(pixels.shape) +
                          " and numbers " + to_string(numbers.shape),
                      "Pass numbers of shape " + to_string(expected));
  normalize_job<T> job{.in = pixels.data,
                       .out = numbers.data,
                       .images = images,
                       .pixels = height * width,
                       .channels = channels,
                       .planar = planar && channels > 1};
  for (std::size_t c = 0; c < channels; ++c) {
    const channel_scale factors = channel_scale_of(options.mean[c], options.std[c], c);
    job.scale[c] = factors.scale;
    job.bias[c] = factors.bias;
  }
  return job;
}

}   // namespace detail

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>
