// Used by jpeg_pair_fuzz.cpp: libjpeg as in its manual, and the counters that are printed at the end.
#pragma once

#include <millrace/item/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

#include "../../unit/image/slow_pictures.hpp"

namespace slow {

namespace mr = millrace;

/// Decodes a full image: the result for any bytes, and the number of warnings.
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

/// Numbers of files on each path.
struct pair_statistics {
  std::uint64_t files = 0, decoded = 0, progressive = 0, refused_unwarned = 0, pictures = 0, errors = 0, accepted = 0;
  std::uint64_t by_entries = 0, by_wrong_entries = 0, by_markers = 0;

  void print() const {
    std::printf("%llu files: the built-in decoder decoded %llu, %llu of them progressive, and left %llu to libjpeg "
                "without a warning; %llu images, %llu errors, %llu accepted though damaged, "
                "%llu by entries, %llu by wrong ones, %llu by restart markers\n",
                static_cast<unsigned long long>(files), static_cast<unsigned long long>(decoded),
                static_cast<unsigned long long>(progressive), static_cast<unsigned long long>(refused_unwarned),
                static_cast<unsigned long long>(pictures), static_cast<unsigned long long>(errors),
                static_cast<unsigned long long>(accepted), static_cast<unsigned long long>(by_entries),
                static_cast<unsigned long long>(by_wrong_entries), static_cast<unsigned long long>(by_markers));
  }
};

inline pair_statistics& counters() {
  static pair_statistics s;
  return s;
}

}  // namespace slow
