// A JPEG's planes as libjpeg stores them, cut to a region, in memory that ends with the last sample.
#pragma once

#include <millrace/image/jpeg/baseline/jpeg_planes.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>

#include "slow_pictures.hpp"

#include <array>
#include <memory>

namespace slow {

class stored_planes {
 public:
  /// All of the image.
  explicit stored_planes(std::span<const std::byte> file) {
    jpeg_error_mgr messages{};
    jpeg_decompress_struct info{};
    info.err = jpeg_std_error(&messages);
    messages.error_exit = stop;
    messages.output_message = [](j_common_ptr) {};
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&info, 1);
    info.raw_data_out = 1;
    jpeg_start_decompress(&info);
    full_.components = info.num_components;
    full_.image_width = static_cast<int>(info.image_width);
    full_.image_height = static_cast<int>(info.image_height);
    full_.horizontal_sampling = info.comp_info[0].h_samp_factor;
    full_.vertical_sampling = info.comp_info[0].v_samp_factor;
    if (info.num_components == 1) full_.horizontal_sampling = full_.vertical_sampling = 1;
    std::array<std::vector<std::vector<std::uint8_t>>, 3> rows;
    const auto step = static_cast<JDIMENSION>(info.max_v_samp_factor * 8);
    while (info.output_scanline < info.output_height) {
      std::array<std::vector<JSAMPROW>, 3> pointers;
      JSAMPARRAY arrays[3];
      for (int c = 0; c < info.num_components; ++c) {
        auto& own = rows[static_cast<std::size_t>(c)];
        const std::size_t before = own.size(), more = static_cast<std::size_t>(info.comp_info[c].v_samp_factor) * 8;
        own.resize(before + more, std::vector<std::uint8_t>(info.comp_info[c].width_in_blocks * 8 + 64));
        for (std::size_t y = before; y < own.size(); ++y)
          pointers[static_cast<std::size_t>(c)].push_back(own[y].data());
        arrays[c] = pointers[static_cast<std::size_t>(c)].data();
      }
      jpeg_read_raw_data(&info, arrays, step);
    }
    for (int c = 0; c < info.num_components; ++c) {
      const auto width = static_cast<std::size_t>(info.comp_info[c].downsampled_width);
      const auto height = static_cast<std::size_t>(info.comp_info[c].downsampled_height);
      samples_[static_cast<std::size_t>(c)] = mr::tensor<std::uint8_t, 2>({height, width});
      for (std::size_t y = 0; y < height; ++y)
        for (std::size_t x = 0; x < width; ++x)
          samples_[static_cast<std::size_t>(c)](y, x) = rows[static_cast<std::size_t>(c)][y][x];
    }
    jpeg_abort_decompress(&info);
    jpeg_destroy_decompress(&info);
  }

  const mr::detail::jpeg_planes& full() const { return full_; }

  /// The blocks that contain the box, each plane in its own heap block, with `gap_bytes` between rows, and nothing
  /// after the last sample. Valid until the next call.
  mr::detail::jpeg_planes region(const mr::crop_box& box, std::size_t gap_bytes = 0) {
    mr::detail::jpeg_planes cut = full_;
    const int across = 8 * full_.horizontal_sampling, down = 8 * full_.vertical_sampling;
    cut.left = static_cast<int>(box.left) / across * across;
    cut.top = static_cast<int>(box.top) / down * down;
    const int end = static_cast<int>(box.left + box.width);
    const int right = std::min((end + across - 1) / across * across, cut.image_width);
    const int bottom = std::min((static_cast<int>(box.top + box.height) + down - 1) / down * down, cut.image_height);
    for (int c = 0; c < full_.components; ++c) {
      const int h = c == 0 ? 1 : full_.horizontal_sampling, v = c == 0 ? 1 : full_.vertical_sampling;
      auto& view = cut.component[c];
      view.width = (right + h - 1) / h - cut.left / h;
      view.height = (bottom + v - 1) / v - cut.top / v;
      const auto width = static_cast<std::size_t>(view.width), height = static_cast<std::size_t>(view.height);
      view.stride_bytes = width + gap_bytes;
      auto& piece = cut_[static_cast<std::size_t>(c)];
      piece = std::make_unique<std::uint8_t[]>((height - 1) * view.stride_bytes + width);
      for (std::size_t y = 0; y < height; ++y)
        for (std::size_t x = 0; x < width; ++x)
          piece[y * view.stride_bytes + x] = samples_[static_cast<std::size_t>(c)](
              static_cast<std::size_t>(cut.top / v) + y, static_cast<std::size_t>(cut.left / h) + x);
      view.data = piece.get();
    }
    return cut;
  }

 private:
  mr::detail::jpeg_planes full_;
  std::array<mr::tensor<std::uint8_t, 2>, 3> samples_;
  std::array<std::unique_ptr<std::uint8_t[]>, 3> cut_;
};

/// A box grown by the pixel on each side that chroma upsampling reads.
inline mr::crop_box with_margin(const mr::crop_box& box, std::size_t height, std::size_t width) {
  const std::size_t left = box.left == 0 ? 0 : box.left - 1, top = box.top == 0 ? 0 : box.top - 1;
  return {.left = left, .top = top, .width = std::min(box.left + box.width + 1, width) - left,
          .height = std::min(box.top + box.height + 1, height) - top};
}

inline constexpr mr::chroma_sampling samplings[] = {mr::chroma_sampling::yuv444, mr::chroma_sampling::yuv422,
                                                    mr::chroma_sampling::yuv440, mr::chroma_sampling::yuv420};

}  // namespace slow
