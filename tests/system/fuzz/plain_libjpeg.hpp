// Decodes a full image with libjpeg as in its manual: the result for any bytes, and the number of warnings.
#pragma once

#include <millrace/item/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

#include "../../unit/image/jpeg/libjpeg/escaping_decompressor.hpp"

namespace slow {

namespace mr = millrace;

class plain_libjpeg : escaping_decompressor {
 public:
  bool error = false;
  long warnings = 0;          ///< up to the last row
  int components = 0;
  bool too_large = false;     ///< not decoded
  mr::image pixels{};         ///< RGB, if there was no error

  plain_libjpeg(std::span<const std::byte> file, std::uint64_t max_pixels) {
    create();
    error = !header(file);
    too_large = !error && std::uint64_t{info_.image_width} * info_.image_height > max_pixels;
    components = info_.num_components;
    if (!error && !too_large && components != 4) {
      pixels = mr::image({info_.image_height, info_.image_width, 3});
      error = !rows();
    }
    warnings = messages_.num_warnings;
    jpeg_destroy_decompress(&info_);
  }

 private:
  bool header(std::span<const std::byte> file) noexcept {
    if (setjmp(escape_) != 0) return false;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&info_, 1);
    return true;
  }

  bool rows() noexcept {
    if (setjmp(escape_) != 0) return false;
    info_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = pixels.data() + std::size_t{info_.output_scanline} * info_.output_width * 3;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    return true;
  }
};

}  // namespace slow
