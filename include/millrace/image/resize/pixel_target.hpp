// The destination of a rendered image: u8 [height, width, 3], u8 patches, or normalized f32, f16 or bf16 [3, height,
// width].
//
//   mr::detail::pixel_target t{.data = row};                                        // u8
//   mr::detail::pixel_target n{.data = numbers, .type = mr::detail::pixel_type::f32,
//                              .scale = {1 / 58.4F, 1 / 57.1F, 1 / 57.4F}, .bias = {-2.1F, -2.0F, -1.8F},
//                              .cold = true};
//   mr::detail::portable_pixel_numbers::write(line, 224, static_cast<float*>(to), {.scale = s, .bias = b});
//
// Each normalized number is fma(x, scale, bias), where x is the byte of the u8 image. The bits equal those of
// normalize() for the u8 image. `cold` indicates that the memory is not in the cache and will not be read soon. If
// `cold` is set and alignment permits, stores bypass the cache. Errors: none. Threads: pure functions; any thread.
#pragma once

#include <millrace/base/half.hpp>

#include <cstddef>
#include <cstdint>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

enum class pixel_type : std::uint8_t { u8, f32, f16, bf16 };

struct pixel_target {
  void* data = nullptr;
  std::size_t row_pixels = 0;   ///< distance between two rows, in u8 pixels; 0 means the width
  std::size_t patch = 0;        ///< side of u8 patches [patches, patch, patch, 3]; 0 for no patches
  pixel_type type = pixel_type::u8;
  float scale[3] = {1, 1, 1}, bias[3] = {};
  bool cold = false;
};

/// How the bytes of one channel are converted to numbers.
struct number_scale {
  float scale = 1, bias = 0;
  bool streams = false;   ///< if true, stores bypass the cache; memory must then begin and end at multiples of 32 bytes
};

struct portable_pixel_numbers {
  template <class T>
  static void write(const std::uint8_t* from, std::size_t count, T* to, const number_scale& s) noexcept {
    for (std::size_t i = 0; i < count; ++i)
      to[i] = half_element<T>(__builtin_fmaf(static_cast<float>(from[i]), s.scale, s.bias));
  }

  /// Splits RGBX pixels, as libjpeg returns them, into one line per channel.
  static void split(const std::uint8_t* pixels, std::size_t count, std::uint8_t* const* lines) noexcept {
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t c = 0; c < 3; ++c) lines[c][i] = pixels[4 * i + c];
  }

  /// Must be called after the last streaming store, before any other thread or device reads the memory.
  static void finish_streaming() noexcept {}
};

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
