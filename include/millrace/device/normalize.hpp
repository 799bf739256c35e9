// Normalizes u8 pixels on the host, to f32, f16 or bf16: (x / 255 - mean) / std for each channel.
//
//   mr::normalize(pixels, numbers, {.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225},
//                                   .layout = mr::image_layout::nchw});
//
// Shapes: pixels [B, H, W, C] with C of 1 to 4; numbers [B, H, W, C] or [B, C, H, W]. The formula is in
// normalize_options.hpp. Every CPU, compiler and code path computes the same bits.
// Errors: as in normalize_options.hpp; setup_error if a view is in device memory. Use normalize.cuh for device memory.
// Threads: any; calls share no state. The caller may split a large batch along B and process the parts on several
// threads.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/device/normalize_options.hpp>
#include <millrace/simd/cpu_features.hpp>
#include <millrace/simd/words.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct table_normalizer {
  template <class T>
  static void run(const normalize_job<T>& job) {
    const auto table = std::make_unique<std::array<std::array<T, 256>, 4>>();
    for (std::size_t c = 0; c < job.channels; ++c)
      for (std::size_t x = 0; x < 256; ++x) (*table)[c][x] = job.value(static_cast<std::uint8_t>(x), c);
    const std::uint8_t* in = job.in;
    for (std::size_t image = 0; image < job.images; ++image) {
      T* out = job.out + image * job.pixels * job.channels;
      const std::size_t pixel_step = job.planar ? 1 : job.channels, channel_step = job.planar ? job.pixels : 1;
      for (std::size_t p = 0; p < job.pixels; ++p)
        for (std::size_t c = 0; c < job.channels; ++c) out[p * pixel_step + c * channel_step] = (*table)[c][*in++];
    }
  }
};

}   // namespace detail

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>

#define MILLRACE_KERNELS <millrace/device/normalize_body.inc>
#include <millrace/simd/for_each_layer.inc>

namespace millrace { inline namespace MILLRACE_ABI {

/// Normalizes pixels, [B, H, W, 1 to 4] u8, on the host. The numbers are [B, H, W, C] or [B, C, H, W].
/// Throws setup_error if the shapes do not match, an option is invalid, or a view is in device memory.
template <detail::training_element T>
void normalize(const tensor_view<const std::uint8_t, 4>& pixels, const tensor_view<T, 4>& numbers,
               const normalize_options& options = {}) {
  const auto job = detail::plan_normalize(pixels, numbers, options);
  static_cast<void>(
      pixels.host());   // throws if the column is in device memory; the error contains the name of the column
  static_cast<void>(numbers.host());
#if defined __x86_64__ || defined __aarch64__
  if (detail::cpu_has_word_layer()) return detail::word_layer::normalize_all(job);
#endif
  detail::table_normalizer::run(job);
}

}}   // namespace millrace
