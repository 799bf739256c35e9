// What normalising pixels means, for the host's loop and for the kernel: options, factors, checks.
//
//   mr::normalize_options o{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225},
//                           .layout = mr::image_layout::nchw};
//
// mean and std are in units of full scale (0..1), as torchvision writes them; the first C values count. Every result is
// fma(x, scale, bias) with scale = 1 / (255 std) and bias = -mean / std, rounded to f32 once, then to nearest even
// where f16 or bf16 is asked for. Errors: setup_error for shapes that do not fit and a std that is no positive number.
#pragma once

#include <millrace/base/channel_scale.hpp>
#include <millrace/base/half.hpp>
#include <millrace/item/tensor.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#ifdef __CUDACC__
#define MILLRACE_BOTH_SIDES __host__ __device__
#else
#define MILLRACE_BOTH_SIDES
#endif

namespace millrace { inline namespace MILLRACE_ABI {

enum class image_layout : std::uint8_t { nhwc, nchw };

struct normalize_options {
  std::array<double, 4> mean{};               ///< per channel, 0..1
  std::array<double, 4> std = {1, 1, 1, 1};   ///< likewise
  image_layout layout = image_layout::nhwc;   ///< of the result
};

namespace detail {

template <class T>
struct normalize_job {
  const std::uint8_t* in = nullptr;
  T* out = nullptr;
  std::size_t images = 0, pixels = 0, channels = 0;   // pixels of one image
  bool planar = false;                                // NCHW
  float scale[4]{}, bias[4]{};                        // no std::array: kernels cannot index one

  T value(std::uint8_t x, std::size_t channel) const noexcept { return made(x, scale[channel], bias[channel]); }
  MILLRACE_BOTH_SIDES static T made(std::uint8_t x, float scale, float bias) noexcept {
    return to_element<T>(std::fma(static_cast<float>(x), scale, bias));
  }
};

/// Checks the shapes and turns the options into factors. Where the memory lies is for the caller to check.
template <training_element T>
normalize_job<T> plan_normalize(const tensor_view<const std::uint8_t, 4>& pixels, const tensor_view<T, 4>& numbers,
                                const normalize_options& options) {
  const auto [images, height, width, channels] = pixels.shape;
  const bool planar = options.layout == image_layout::nchw;
  const std::array<std::size_t, 4> expected =
      planar ? std::array{images, channels, height, width} : std::array{images, height, width, channels};
  if (channels < 1 || channels > 4)
    throw setup_error("normalize was given pixels of shape " + to_string(pixels.shape), "Give [B, H, W, 1 to 4]");
  if (numbers.shape != expected)
    throw setup_error("normalize was given pixels of shape " + to_string(pixels.shape) + " and numbers of shape " +
                          to_string(numbers.shape),
                      "The numbers have to be " + to_string(expected));
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

}  // namespace detail

}}  // namespace millrace

#undef MILLRACE_BOTH_SIDES
