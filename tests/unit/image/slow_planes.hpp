// JPEG files of every kind that the built-in decoder supports, and their planes by libjpeg's raw interface.
#pragma once

#include <millrace/image/jpeg/baseline/jpeg_planes.hpp>
#include <millrace/image/jpeg/libjpeg/libjpeg.hpp>

#include "slow_pictures.hpp"

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

namespace slow {

struct file_recipe {
  int quality = 90;
  int horizontal = 2, vertical = 2;      ///< of luma; chroma is 1 x 1
  unsigned restart_interval = 0;         ///< MCUs
  bool optimize_tables = false;
  bool progressive = false;
  std::vector<jpeg_scan_info> scans{};   ///< of a progressive file; none: libjpeg's own
};

/// As encode_jpeg of the library, with options that only tests need.
inline std::vector<std::byte> make_file(const mr::image& pixels, const file_recipe& recipe) {
  jpeg_error_mgr messages{};
  jpeg_compress_struct info{};
  info.err = jpeg_std_error(&messages);
  messages.error_exit = stop;
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  const auto [height, width, channels] = pixels.shape();
  info.image_height = static_cast<JDIMENSION>(height);
  info.image_width = static_cast<JDIMENSION>(width);
  info.input_components = static_cast<int>(channels);
  info.in_color_space = channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, recipe.quality, 1);
  info.comp_info[0].h_samp_factor = recipe.horizontal;
  info.comp_info[0].v_samp_factor = recipe.vertical;
  info.optimize_coding = recipe.optimize_tables;
  info.restart_interval = recipe.restart_interval;
  if (recipe.progressive) jpeg_simple_progression(&info);
  if (!recipe.scans.empty()) {
    info.scan_info = recipe.scans.data();
    info.num_scans = static_cast<int>(recipe.scans.size());
  }
  jpeg_start_compress(&info, 1);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(pixels.data() + info.next_scanline * width * channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const auto* begin = reinterpret_cast<const std::byte*>(memory);
  std::vector<std::byte> file(begin, begin + size);
  std::free(memory);
  return file;
}

/// The full component, its true size.
struct plane {
  int width = 0, height = 0;
  std::vector<std::uint8_t> samples;
};

struct raw_planes {
  bool error = false;
  long warnings = 0;                     ///< of libjpeg, up to the last requested row of MCUs
  std::array<plane, 3> component{};
  int components = 0;
};

/// libjpeg's planes of a file down to the MCU row that contains luma row `bottom` - 1, at `eighths` / 8 of the size.
class raw_reader : escaping_decompressor {
 public:
  explicit raw_reader(std::uint64_t max_pixels = 4'000'000) : max_pixels_(max_pixels) {}

  raw_planes read(std::span<const std::byte> file, std::size_t bottom, int eighths = 8) {
    planes_ = {};
    eighths_ = eighths;
    create();
    if (!header(file)) planes_.error = true;
    else {
      lay_out();
      if (!rows(bottom)) planes_.error = true;
    }
    planes_.warnings = messages_.num_warnings;
    jpeg_destroy_decompress(&info_);
    return std::move(planes_);
  }

 private:
  bool header(std::span<const std::byte> file) noexcept {
    if (setjmp(escape_) != 0) return false;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&info_, 1);
    info_.raw_data_out = 1;
    info_.dct_method = JDCT_ISLOW;
    info_.scale_num = static_cast<unsigned>(eighths_);
    info_.scale_denom = 8;
    if (std::uint64_t{info_.image_width} * info_.image_height > max_pixels_ || info_.num_components > 3) return false;
    if (jpeg_has_multiple_scans(&info_) && !info_.progressive_mode) return false;   // unsupported
    jpeg_start_decompress(&info_);
    return true;
  }
  /// Samples on a side of a component's blocks; the field's name depends on the version of libjpeg.
  static unsigned block_side(const auto& component) {
    if constexpr (requires { component.DCT_v_scaled_size; }) return static_cast<unsigned>(component.DCT_v_scaled_size);
    else return static_cast<unsigned>(component.DCT_scaled_size);
  }
  void lay_out() {
    planes_.components = info_.num_components;
    for (std::size_t c = 0; c < static_cast<std::size_t>(info_.num_components); ++c) {
      const auto& k = info_.comp_info[c];
      // Rows of a component are stored in complete MCUs, columns in complete blocks.
      stride_[c] = k.width_in_blocks * 8 + 64;
      const std::size_t rows = info_.total_iMCU_rows * static_cast<unsigned>(k.v_samp_factor) * 8;
      planes_.component[c].width = static_cast<int>(k.downsampled_width);
      planes_.component[c].height = static_cast<int>(k.downsampled_height);
      memory_[c].assign(stride_[c] * rows, 0);
      rows_[c].resize(rows);
      for (std::size_t r = 0; r < rows; ++r) rows_[c][r] = memory_[c].data() + r * stride_[c];
    }
  }
  bool rows(std::size_t bottom) {
    if (!read_rows(bottom)) return false;
    for (std::size_t c = 0; c < static_cast<std::size_t>(planes_.components); ++c) {
      plane& p = planes_.component[c];
      for (std::size_t r = 0; r < static_cast<std::size_t>(p.height); ++r)
        p.samples.insert(p.samples.end(), rows_[c][r], rows_[c][r] + p.width);
    }
    return true;
  }
  bool read_rows(std::size_t bottom) noexcept {
    if (setjmp(escape_) != 0) return false;
    const auto lines = static_cast<unsigned>(info_.max_v_samp_factor * eighths_);
    while (info_.output_scanline < info_.output_height && info_.output_scanline < bottom) {
      const unsigned row = info_.output_scanline / lines;
      JSAMPARRAY arrays[3];
      for (std::size_t c = 0; c < static_cast<std::size_t>(info_.num_components); ++c) {
        const auto& k = info_.comp_info[c];
        arrays[c] = rows_[c].data() + row * static_cast<unsigned>(k.v_samp_factor) * block_side(k);
      }
      jpeg_read_raw_data(&info_, arrays, lines);
    }
    return true;
  }

  std::uint64_t max_pixels_;
  int eighths_ = 8;
  std::array<std::size_t, 3> stride_{};
  std::array<std::vector<std::uint8_t>, 3> memory_;
  std::array<std::vector<JSAMPROW>, 3> rows_;
  raw_planes planes_;
};

/// Empty if the planes are those of libjpeg, else the first difference.
inline std::string difference_of(const mr::detail::jpeg_planes& got, const raw_planes& expected) {
  if (expected.error) return "libjpeg has an error";
  if (got.components != expected.components) return "another number of components";
  for (std::size_t c = 0; c < static_cast<std::size_t>(got.components); ++c) {
    const auto& view = got.component[c];
    const plane& full = expected.component[c];
    const int left = c == 0 ? got.left : got.left / got.horizontal_sampling;
    const int top = c == 0 ? got.top : got.top / got.vertical_sampling;
    if (view.width < 1 || view.height < 1 || left + view.width > full.width || top + view.height > full.height)
      return "component " + std::to_string(c) + " has an impossible size";
    for (int y = 0; y < view.height; ++y)
      for (int x = 0; x < view.width; ++x) {
        const auto a = view.data[static_cast<std::size_t>(y) * view.stride_bytes + static_cast<std::size_t>(x)];
        const auto b = full.samples[static_cast<std::size_t>((top + y) * full.width + left + x)];
        if (a != b)
          return "component " + std::to_string(c) + ", column " + std::to_string(left + x) + ", row " +
                 std::to_string(top + y) + ": " + std::to_string(a) + " (expected: " + std::to_string(b) + ")";
      }
  }
  return {};
}

/// Whether the planes contain every sample of the rectangle.
inline bool covers(const mr::detail::jpeg_planes& got, const mr::detail::jpeg_planes_request& request) {
  const auto right = std::min<std::size_t>(request.right, static_cast<std::size_t>(got.image_width));
  const auto bottom = std::min<std::size_t>(request.bottom, static_cast<std::size_t>(got.image_height));
  const auto& luma = got.component[0];
  return static_cast<std::size_t>(got.left) <= request.left && static_cast<std::size_t>(got.top) <= request.top &&
         static_cast<std::size_t>(got.left + luma.width) >= right &&
         static_cast<std::size_t>(got.top + luma.height) >= bottom;
}

}  // namespace slow
