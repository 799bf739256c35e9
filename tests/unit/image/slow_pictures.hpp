// Slow, obvious image operations in double precision, and images to try them on: the reference of these tests.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/image/jpeg/libjpeg/libjpeg.hpp>
#include <millrace/image/plan/random_crop.hpp>
#include <millrace/item/bytes.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdlib>
#include <string>
#include <vector>

namespace slow {

namespace mr = millrace;
using real_image = mr::tensor<double, 3>;

/// Smooth shapes, edges and noise.
inline mr::image photo(std::size_t height, std::size_t width, std::size_t channels, std::uint64_t seed) {
  mr::image result({height, width, channels});
  mr::rng random({.seed = seed});
  const double fx = random.uniform(0.02, 0.4), fy = random.uniform(0.02, 0.4);
  const std::int64_t noise = random.between(0, 40), edge = random.between(2, 40);
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x)
      for (std::size_t c = 0; c < channels; ++c) {
        const double wave = 128 + 70 * std::sin(fx * static_cast<double>(x) + static_cast<double>(c)) *
                                      std::cos(fy * static_cast<double>(y));
        const std::int64_t step =
            (static_cast<std::int64_t>(x + 2 * y) / edge + static_cast<std::int64_t>(c)) % 2 ? 30 : -30;
        const auto value = static_cast<std::int64_t>(wave) + step + random.between(-noise, noise);
        result(y, x, c) = static_cast<std::uint8_t>(std::clamp<std::int64_t>(value, 0, 255));
      }
  return result;
}

[[noreturn]] inline void stop(j_common_ptr info) {
  char text[JMSG_LENGTH_MAX];
  info->err->format_message(info, text);
  std::fprintf(stderr, "reference decoder: %s\n", text);
  std::abort();
}

/// The full image by libjpeg's default path; `colors` as in the output, scaled to eighths / 8.
inline mr::image decode(std::span<const std::byte> file, J_COLOR_SPACE colors = JCS_RGB, unsigned eighths = 8) {
  jpeg_error_mgr messages{};
  jpeg_decompress_struct info{};
  info.err = jpeg_std_error(&messages);
  messages.error_exit = stop;
  messages.output_message = [](j_common_ptr) {};
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&info, 1);
  info.out_color_space = colors;
  info.scale_num = eighths;
  info.scale_denom = 8;
  jpeg_start_decompress(&info);
  mr::image result({info.output_height, info.output_width, static_cast<std::size_t>(info.output_components)});
  while (info.output_scanline < info.output_height) {
    JSAMPROW row =
        result.data() + info.output_scanline * info.output_width * static_cast<unsigned>(info.output_components);
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return result;
}

inline real_image real(const mr::image& from) {
  real_image result(from.shape());
  std::copy(from.span().begin(), from.span().end(), result.span().begin());
  return result;
}

template <class Image>
Image crop(const Image& from, const mr::crop_box& box) {
  Image result({box.height, box.width, from.shape()[2]});
  for (std::size_t y = 0; y < box.height; ++y)
    for (std::size_t x = 0; x < box.width; ++x)
      for (std::size_t c = 0; c < from.shape()[2]; ++c) result(y, x, c) = from(box.top + y, box.left + x, c);
  return result;
}

template <class Image>
Image flip(const Image& from) {
  const auto [height, width, channels] = from.shape();
  Image result(from.shape());
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x)
      for (std::size_t c = 0; c < channels; ++c) result(y, x, c) = from(y, width - 1 - x, c);
  return result;
}

template <class Image>
Image transpose(const Image& from) {
  const auto [height, width, channels] = from.shape();
  Image result({width, height, channels});
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x)
      for (std::size_t c = 0; c < channels; ++c) result(x, y, c) = from(y, x, c);
  return result;
}

/// Rows only; columns by transposing.
inline real_image resize_rows(const real_image& from, std::size_t target) {
  const auto [height, width, channels] = from.shape();
  real_image result({target, width, channels});
  const double scale = static_cast<double>(height) / static_cast<double>(target), reach = std::max(scale, 1.0);
  for (std::size_t o = 0; o < target; ++o) {
    const double center = (static_cast<double>(o) + 0.5) * scale;
    double sum = 0;
    for (std::size_t i = 0; i < height; ++i) {
      const double weight = 1 - std::abs(static_cast<double>(i) + 0.5 - center) / reach;
      if (weight <= 0) continue;
      sum += weight;
      for (std::size_t x = 0; x < width; ++x)
        for (std::size_t c = 0; c < channels; ++c) result(o, x, c) += weight * from(i, x, c);
    }
    for (std::size_t x = 0; x < width; ++x)
      for (std::size_t c = 0; c < channels; ++c) result(o, x, c) /= sum;
  }
  return result;
}

inline real_image resize(const real_image& from, std::size_t height, std::size_t width) {
  return transpose(resize_rows(transpose(resize_rows(from, height)), width));
}

/// The cubic with a = -0.5 as it is printed.
inline double cubic(double x) {
  x = std::abs(x);
  if (x < 1) return 1.5 * x * x * x - 2.5 * x * x + 1;
  return x < 2 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2 : 0;
}

/// Rows only, clamped after it.
inline real_image resize_rows_bicubic(const real_image& from, std::size_t target) {
  const auto [height, width, channels] = from.shape();
  real_image result({target, width, channels});
  const double scale = static_cast<double>(height) / static_cast<double>(target), pixel = std::max(scale, 1.0);
  for (std::size_t o = 0; o < target; ++o) {
    double sum = 0;
    for (std::size_t i = 0; i < height; ++i) {
      const double weight = cubic((static_cast<double>(i) + 0.5 - (static_cast<double>(o) + 0.5) * scale) / pixel);
      if (weight == 0) continue;
      sum += weight;
      for (std::size_t x = 0; x < width; ++x)
        for (std::size_t c = 0; c < channels; ++c) result(o, x, c) += weight * from(i, x, c);
    }
    for (std::size_t x = 0; x < width; ++x)
      for (std::size_t c = 0; c < channels; ++c) result(o, x, c) = std::clamp(result(o, x, c) / sum, 0.0, 255.0);
  }
  return result;
}

/// Columns, then rows, as Pillow does it: the order matters, because of the clamping in between.
inline real_image resize_bicubic(const real_image& from, std::size_t height, std::size_t width) {
  return resize_rows_bicubic(transpose(resize_rows_bicubic(transpose(from), width)), height);
}

struct difference {
  double max = 0, mean = 0;
};

/// Between pixels and real numbers, these rounded once.
inline difference compare(const mr::image& got, const real_image& expected) {
  difference d;
  if (got.shape() != expected.shape()) return {.max = 1e9, .mean = 1e9};
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double gap = std::abs(got.span()[i] - std::floor(expected.span()[i] + 0.5));
    d.max = std::max(d.max, gap);
    d.mean += gap / static_cast<double>(got.size());
  }
  return d;
}

inline mr::bytes view(const std::vector<std::byte>& file) {
  return mr::bytes::borrowed(std::span<const std::byte>(file));
}

// libjpeg's decompressor, which prints nothing and reports an error by longjmp to a function of the caller.
//
//   if (setjmp(escape_) != 0) return false;          // in each function of a derived class that calls libjpeg
//   jpeg_read_header(&info_, 1);

class escaping_decompressor {
 public:
  escaping_decompressor() = default;
  escaping_decompressor(const escaping_decompressor&) = delete;
  escaping_decompressor& operator=(const escaping_decompressor&) = delete;

 protected:
  /// The caller calls jpeg_destroy_decompress().
  void create() noexcept {
    info_.err = jpeg_std_error(&messages_);
    messages_.error_exit = [](j_common_ptr info) { std::longjmp(*static_cast<std::jmp_buf*>(info->client_data), 1); };
    messages_.output_message = [](j_common_ptr) {};
    info_.client_data = &escape_;   // for errors during its creation
    jpeg_create_decompress(&info_);
    info_.client_data = &escape_;
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr messages_{};
  std::jmp_buf escape_{};
};

}  // namespace slow
