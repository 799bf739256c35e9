// Definitions for jpeg_encoder.hpp.
#pragma once

#include <millrace/image/jpeg/jpeg_encoder.hpp>

#include <millrace/base/error.hpp>
#include <millrace/image/jpeg/libjpeg/jpeg_output.hpp>

#include <array>
#include <csetjmp>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

class jpeg_compressor : private jpeg_output {
 public:
  std::vector<std::byte> encode(const image& pixels, const jpeg_encode_options& options);

 private:
  bool compress(const std::uint8_t* pixels, const std::array<std::size_t, 3>& shape,
                const jpeg_encode_options& options) noexcept;
};

MILLRACE_INLINE std::vector<std::byte> jpeg_compressor::encode(const image& pixels,
                                                               const jpeg_encode_options& options) {
  if (!compress(pixels.data(), pixels.shape(), options))
    throw setup_error("the image cannot be encoded: " + text(),
                      "Change the jpeg_encode_options or the shape of the image", {.stage = "jpeg"});
  return take();
}

MILLRACE_INLINE bool jpeg_compressor::compress(const std::uint8_t* pixels, const std::array<std::size_t, 3>& shape,
                                               const jpeg_encode_options& options) noexcept {
  if (setjmp(escape_) != 0) return false;
  info_.image_height = static_cast<JDIMENSION>(shape[0]);
  info_.image_width = static_cast<JDIMENSION>(shape[1]);
  info_.input_components = static_cast<int>(shape[2]);
  info_.in_color_space = shape[2] == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&info_);
  if (options.keep_rgb && shape[2] == 3) jpeg_set_colorspace(&info_, JCS_RGB);
  jpeg_set_quality(&info_, options.quality, 1);
  if (shape[2] == 3 && !options.keep_rgb) {
    const auto s = options.sampling;
    const bool half = s == chroma_sampling::yuv422 || s == chroma_sampling::yuv420;
    info_.comp_info[0].h_samp_factor = s == chroma_sampling::yuv411 ? 4 : half ? 2 : 1;
    info_.comp_info[0].v_samp_factor = s == chroma_sampling::yuv440 || s == chroma_sampling::yuv420 ? 2 : 1;
  }
  info_.optimize_coding = options.optimize_tables && !options.arithmetic;
  info_.arith_code = options.arithmetic;
  info_.restart_in_rows = static_cast<int>(options.restart_rows);
  if (options.progressive) jpeg_simple_progression(&info_);
  jpeg_start_compress(&info_, 1);
  while (info_.next_scanline < info_.image_height) {
    auto* row = const_cast<JSAMPROW>(pixels + info_.next_scanline * shape[1] * shape[2]);
    jpeg_write_scanlines(&info_, &row, 1);
  }
  jpeg_finish_compress(&info_);
  return true;
}

}   // namespace detail

MILLRACE_INLINE std::vector<std::byte> encode_jpeg(const image& pixels, const jpeg_encode_options& options) {
  const auto& shape = pixels.shape();
  if ((shape[2] != 1 && shape[2] != 3) || shape[0] < 1 || shape[1] < 1 || shape[0] > 65'500 || shape[1] > 65'500)
    throw setup_error("an image has a shape that JPEG does not support: got " + to_string(shape) +
                          ", expected [height, width, 1 or 3] with sides of 1 to 65500",
                      "Convert the image to RGB or gray, and resize it if it is too large", {.stage = "jpeg"});
  if (options.quality < 1 || options.quality > 100)
    throw setup_error(
        "the JPEG quality is out of range: got " + std::to_string(options.quality) + ", expected 1 to 100",
        "Set jpeg_encode_options::quality", {.stage = "jpeg"});
  return detail::jpeg_compressor().encode(pixels, options);
}

}}   // namespace millrace
