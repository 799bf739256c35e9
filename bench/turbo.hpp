// libjpeg-turbo as its users call it: the region of a crop, a complete image, raw planes.
//
//   bench::turbo libjpeg;
//   libjpeg.region({.bytes = file, .left = 60, .top = 40, .right = 300, .bottom = 200});
#pragma once

#include <millrace/image/jpeg/baseline/jpeg_planes.hpp>
#include <millrace/image/jpeg/libjpeg/libjpeg.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bench {

namespace mr = millrace;

/// Ends the program on an error, because the benchmark wrote the files.
class turbo {
 public:
  turbo() {
    info_.err = jpeg_std_error(&messages_);
    jpeg_create_decompress(&info_);
  }
  ~turbo() { jpeg_destroy_decompress(&info_); }
  turbo(const turbo&) = delete;
  turbo& operator=(const turbo&) = delete;

  void region(const mr::detail::jpeg_planes_request& request) {
    open(request);
    info_.out_color_space = JCS_EXT_RGBX;
    jpeg_start_decompress(&info_);
    auto left = static_cast<JDIMENSION>(request.left);
    auto width = static_cast<JDIMENSION>(std::min<std::size_t>(request.right, info_.output_width)) - left;
    jpeg_crop_scanline(&info_, &left, &width);
    if (request.top > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(request.top));
    // libjpeg-turbo stores past the caches into rows that are aligned to 32 bytes, which slows it by up to 40 % here.
    row_.resize(info_.output_width * 4 + 64);
    JSAMPROW row = row_.data() + 48 - reinterpret_cast<std::uintptr_t>(row_.data()) % 32;
    const auto bottom = std::min<std::size_t>(request.bottom, info_.output_height);
    while (info_.output_scanline < bottom) jpeg_read_scanlines(&info_, &row, 1);
    jpeg_abort_decompress(&info_);
  }

  /// Decodes the complete image to RGB.
  const mr::image& decode_rgb(std::span<const std::byte> file) {
    open({.bytes = file});
    info_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info_);
    if (pixels_.shape() != std::array<std::size_t, 3>{info_.output_height, info_.output_width, 3})
      pixels_ = mr::image({info_.output_height, info_.output_width, 3});
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = &pixels_(info_.output_scanline, 0, 0);
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
    return pixels_;
  }

  void planes(const mr::detail::jpeg_planes_request& request) {
    open(request);
    info_.raw_data_out = 1;
    jpeg_start_decompress(&info_);
    const auto lines = static_cast<JDIMENSION>(info_.max_v_samp_factor * 8);
    const std::size_t stride = info_.comp_info[0].width_in_blocks * 8 + 64;
    row_.resize(stride * lines * 3);
    std::vector<JSAMPROW> rows(lines * 3);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = row_.data() + i * stride;
    JSAMPARRAY arrays[3] = {rows.data(), rows.data() + lines, rows.data() + 2 * lines};
    const auto bottom = std::min<std::size_t>(request.bottom, info_.output_height);
    while (info_.output_scanline < bottom) jpeg_read_raw_data(&info_, arrays, lines);
    jpeg_abort_decompress(&info_);
  }

 private:
  void open(const mr::detail::jpeg_planes_request& request) {
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(request.bytes.data()), request.bytes.size());
    jpeg_read_header(&info_, 1);
    info_.raw_data_out = 0;
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr messages_{};
  std::vector<JSAMPLE> row_;
  mr::image pixels_;
};

}   // namespace bench
