// JPEG files of every kind that libjpeg can write, and their contents, read in the simplest way.
#pragma once

#include <millrace/image/jpeg/libjpeg/libjpeg.hpp>

#include "slow_pictures.hpp"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace slow {

struct marker {
  int code = JPEG_COM;
  std::string payload{};
};

struct jpeg_recipe {
  J_COLOR_SPACE stored = JCS_YCbCr;                                ///< gray, YCbCr, RGB, CMYK or YCCK
  std::array<std::pair<int, int>, 4> sampling{{{1, 1}, {1, 1}, {1, 1}, {1, 1}}};   ///< horizontal, vertical
  int quality = 90;
  bool progressive = false, arithmetic = false, optimize_tables = false, scan_for_each = false;
  unsigned restart_interval = 0;                                   ///< MCUs
  std::vector<marker> markers{};                                   ///< after libjpeg's own
  /// Added to a coefficient of the first block, after the quantizer.
  int more_in_coefficient = 0;
};

inline std::size_t channels_of(J_COLOR_SPACE stored) {
  return stored == JCS_GRAYSCALE ? 1 : stored == JCS_YCbCr || stored == JCS_RGB ? 3 : 4;
}

namespace recipe_detail {

struct compressor {
  jpeg_error_mgr messages{};
  jpeg_compress_struct info{};
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  std::array<jpeg_scan_info, 4> scans{};

  compressor() {
    info.err = jpeg_std_error(&messages);
    messages.error_exit = stop;
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &memory, &size);
  }
  compressor(const compressor&) = delete;
  compressor& operator=(const compressor&) = delete;
  ~compressor() {
    jpeg_destroy_compress(&info);
    std::free(memory);
  }
  void choose_coding(const jpeg_recipe& r) {
    info.arith_code = r.arithmetic;
    info.optimize_coding = r.optimize_tables && !r.arithmetic;
    info.restart_interval = r.restart_interval;
    if (r.progressive) jpeg_simple_progression(&info);
    if (!r.scan_for_each) return;
    for (int c = 0; c < info.num_components; ++c) {
      scans[static_cast<std::size_t>(c)] = {.comps_in_scan = 1, .component_index = {c}, .Ss = 0, .Se = 63, .Ah = 0,
                                            .Al = 0};
    }
    info.scan_info = scans.data();
    info.num_scans = info.num_components;
  }
  void write_markers(const jpeg_recipe& r) {
    for (const auto& m : r.markers)
      jpeg_write_marker(&info, m.code, reinterpret_cast<const JOCTET*>(m.payload.data()),
                        static_cast<unsigned>(m.payload.size()));
  }
  std::vector<std::byte> finish() {
    jpeg_finish_compress(&info);
    const auto* begin = reinterpret_cast<const std::byte*>(memory);
    return {begin, begin + size};
  }
};

struct decompressor {
  jpeg_error_mgr messages{};
  jpeg_decompress_struct info{};
  jvirt_barray_ptr* arrays = nullptr;

  explicit decompressor(std::span<const std::byte> file) {
    info.err = jpeg_std_error(&messages);
    messages.error_exit = stop;
    messages.emit_message = [](j_common_ptr, int) {};
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&info, 1);
    arrays = jpeg_read_coefficients(&info);
  }
  decompressor(const decompressor&) = delete;
  decompressor& operator=(const decompressor&) = delete;
  ~decompressor() { jpeg_destroy_decompress(&info); }

  JBLOCK& block(int component, JDIMENSION row, JDIMENSION column) {
    auto* common = reinterpret_cast<j_common_ptr>(&info);
    return (*info.mem->access_virt_barray(common, arrays[component], row, 1, 1))[column];
  }
};

/// The same file with another first coefficient; arithmetic coding can store any.
inline std::vector<std::byte> with_more_in_coefficient(std::span<const std::byte> file, const jpeg_recipe& r) {
  decompressor from(file);
  from.block(0, 0, 0)[1] = static_cast<JCOEF>(from.block(0, 0, 0)[1] + r.more_in_coefficient);
  compressor to;
  jpeg_copy_critical_parameters(&from.info, &to.info);
  to.choose_coding(r);
  jpeg_write_coefficients(&to.info, from.arrays);
  to.write_markers(r);
  return to.finish();
}

}  // namespace recipe_detail

/// `pixels` has channels_of(recipe.stored) channels.
inline std::vector<std::byte> make_jpeg(const mr::image& pixels, const jpeg_recipe& r) {
  recipe_detail::compressor to;
  auto& info = to.info;
  const auto [height, width, channels] = pixels.shape();
  info.image_height = static_cast<JDIMENSION>(height);
  info.image_width = static_cast<JDIMENSION>(width);
  info.input_components = static_cast<int>(channels);
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_colorspace(&info, r.stored);
  jpeg_set_quality(&info, r.quality, 1);
  for (int c = 0; c < info.num_components; ++c) {
    info.comp_info[c].h_samp_factor = r.sampling[static_cast<std::size_t>(c)].first;
    info.comp_info[c].v_samp_factor = r.sampling[static_cast<std::size_t>(c)].second;
  }
  to.choose_coding(r);
  jpeg_start_compress(&info, 1);
  to.write_markers(r);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(pixels.data() + info.next_scanline * width * channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  auto file = to.finish();
  return r.more_in_coefficient == 0 ? file : recipe_detail::with_more_in_coefficient(file, r);
}

/// Size, layout, quantizers and every coefficient, one after the other.
inline std::vector<int> coefficients(std::span<const std::byte> file) {
  recipe_detail::decompressor from(file);
  const auto& info = from.info;
  std::vector<int> all{static_cast<int>(info.image_width), static_cast<int>(info.image_height), info.num_components,
                       static_cast<int>(info.jpeg_color_space)};
  for (int c = 0; c < info.num_components; ++c) {
    const auto& layout = info.comp_info[c];
    for (const int number : {layout.component_id, layout.h_samp_factor, layout.v_samp_factor}) all.push_back(number);
    for (const auto step : info.quant_tbl_ptrs[layout.quant_tbl_no]->quantval) all.push_back(step);
    for (JDIMENSION y = 0; y < layout.height_in_blocks; ++y)
      for (JDIMENSION x = 0; x < layout.width_in_blocks; ++x)
        for (const JCOEF value : from.block(c, y, x)) all.push_back(value);
  }
  return all;
}

/// Every byte from SOI to the first table or frame header: the markers with metadata of the image.
inline std::string leading_markers(std::span<const std::byte> file) {
  std::size_t at = 2;
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(file[i]); };
  while (byte(at + 1) >= 0xe0) at += 2 + (byte(at + 2) << 8) + byte(at + 3);
  return {reinterpret_cast<const char*>(file.data()), at};
}

inline std::size_t restart_markers(std::span<const std::byte> file) {
  std::size_t count = 0;
  for (std::size_t i = 0; i + 1 < file.size(); ++i)
    count += file[i] == std::byte{0xff} && file[i + 1] >= std::byte{0xd0} && file[i + 1] <= std::byte{0xd7};
  return count;
}

// Bytes that do not belong in a JPEG, and the places for them.

using file_bytes = std::vector<std::byte>;

inline file_bytes with(file_bytes file, std::size_t at, std::string_view junk) {
  const auto bytes = std::as_bytes(std::span(junk));
  file.insert(file.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin(), bytes.end());
  return file;
}

/// The offsets of the segments before the first scan, and of that scan, without the first segment: there every reader
/// expects ff d8 ff.
inline std::vector<std::size_t> segments_of(const file_bytes& file) {
  std::vector<std::size_t> all;
  for (std::size_t at = 2;;) {
    if (at > 2) all.push_back(at);
    if (std::to_integer<int>(file[at + 1]) == 0xda) return all;
    at += 2 + (std::to_integer<std::size_t>(file[at + 2]) << 8) + std::to_integer<std::size_t>(file[at + 3]);
  }
}

}  // namespace slow
