// Decodes a region of a JPEG with libjpeg, row by row, into a sink. One decoder is reused for all images.
//
//   mr::detail::jpeg_decoder d;                          // in a worker's scratch
//   d.open(bytes, {.max_scans = 100});                   // parses the header
//   d.decode({.left = 60, .top = 40, .right = 300, .bottom = 200}, sink);
//   auto damaged = d.counts().damaged;                   // images accepted in spite of damage
//
// A sink has set_source(left, width), next_row(), commit_row() and wants_rows(), as in resize/plane_resizer.hpp. The
// sink receives RGBX rows, beginning with row `top`. If decoding only the region would change pixels, the decoder
// decodes complete rows. Damage below the region is not detected.
// Errors and threads: as in jpeg_input.hpp.
#pragma once

#include <millrace/image/jpeg/libjpeg/jpeg_input.hpp>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Rows [top, bottom) and columns [left, right), in pixels of the decoded image.
struct decode_region {
  std::size_t left = 0, top = 0, right = 0, bottom = 0;
};

/// A libjpeg decoder.
class jpeg_decoder : private jpeg_input {
 public:
  jpeg_decoder() : jpeg_input(", or set accept_damaged to decode the intact part") {}

  /// Reads the header and sets the decoding size to `eighths` / 8 of the stored size; `eighths` is 1, 2, 4 or 8. `data`
  /// must stay valid until decode() returns. Throws data_error if the header is not valid.
  void open(std::span<const std::byte> data, const jpeg_limits& limits, unsigned eighths = 8) {
    jpeg_input::open(data, limits);
    info_.out_color_space = info_.num_components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
    info_.dct_method = JDCT_ISLOW;
    info_.do_fancy_upsampling = 1;
    info_.scale_num = eighths;
    info_.scale_denom = 8;
  }

  /// Returns the stored width in pixels. This function and the next two return values from the header that open() has
  /// read.
  std::size_t stored_width() const noexcept { return info_.image_width; }
  std::size_t stored_height() const noexcept { return info_.image_height; }
  int components() const noexcept { return info_.num_components; }

  /// Decodes the region into the sink. Throws data_error if the file is damaged, and rethrows exceptions of
  /// set_source().
  template <class Sink>
  void decode(const decode_region& region, Sink& sink) {
    left_ = 0;
    if (!start(region)) fail();
    try {
      sink.set_source(left_, info_.output_width);
    } catch (...) {
      abandon();
      throw;
    }
    if (!drive(region, sink)) fail();
    if (info_.output_scanline == info_.output_height) read_end();
    ++counts_.pictures;
    counts_.progressive += info_.progressive_mode ? 1 : 0;
    counts_.damaged += damaged_ ? 1 : 0;
    abandon();
  }

  using jpeg_input::abandon;

  /// Returns the event counts since the decoder was constructed.
  const libjpeg_counts& counts() const noexcept { return counts_; }

 private:
  /// Returns true only if libjpeg produces the same pixels for a region of this image as for the full image. The pixels
  /// differ in two cases. libjpeg-turbo 2.1.5 reads uninitialized memory when it crops a scaled image with 4x2 luma
  /// sampling. Block smoothing of images with several scans reads beyond the region.
  bool can_crop() const noexcept {
    if (jpeg_has_multiple_scans(const_cast<j_decompress_ptr>(&info_))) return false;
    if (info_.num_components == 1) return true;
    if (info_.num_components != 3) return false;
    const auto* c = info_.comp_info;
    for (int i = 1; i < 3; ++i)
      if (c[i].h_samp_factor != 1 || c[i].v_samp_factor != 1) return false;
    const int luma = c[0].h_samp_factor * 10 + c[0].v_samp_factor;
    return luma == 11 || luma == 21 || luma == 12 || luma == 22 || luma == 41;
  }

  bool start(const decode_region& region) noexcept {
    if (setjmp(escape_) != 0) return false;
    jpeg_start_decompress(&info_);
    if (!can_crop()) return true;
    // The region gets a margin of one pixel on each side, because fancy upsampling reads the neighbors. The region also
    // gets a minimum width, because libjpeg does not interpolate a row with only one chroma value.
    constexpr std::size_t least_width = 8;
    const std::size_t before = region.left == 0 ? 0 : region.left - 1;
    const std::size_t to = std::min<std::size_t>(std::max(region.right + 1, before + least_width), info_.output_width);
    const std::size_t from = std::min(before, to - std::min(to, least_width));
    auto offset = static_cast<JDIMENSION>(from);
    auto width = static_cast<JDIMENSION>(to - from);
    if (width < info_.output_width) jpeg_crop_scanline(&info_, &offset, &width);
    else offset = 0;
    left_ = offset;
    if (region.top > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(region.top));
    return true;
  }

  template <class Sink>
  bool drive(const decode_region& region, Sink& sink) noexcept {
    if (setjmp(escape_) != 0) return false;
    while (sink.wants_rows() && info_.output_scanline < info_.output_height) {
      const bool in_region = info_.output_scanline >= region.top;
      JSAMPROW row = sink.next_row();
      jpeg_read_scanlines(&info_, &row, 1);
      if (!in_region) continue;
      if (info_.out_color_space == JCS_CMYK) cmyk_to_rgb(row, info_.output_width);
      sink.commit_row();
    }
    return true;
  }

  /// Reads to the end of the image, so that the warning about surplus bytes before the end is counted. Errors have no
  /// effect here, because the pixels are already decoded.
  void read_end() noexcept {
    if (setjmp(escape_) != 0) return;
    reads_end_ = true;
    jpeg_finish_decompress(&info_);
  }

  /// Converts CMYK to RGB. JPEG files store CMYK values inverted, which is a convention of Adobe. The formula is the
  /// same as in Pillow: rounded products of 8-bit fractions.
  static void cmyk_to_rgb(std::uint8_t* pixels, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint8_t* p = pixels + 4 * i;
      const unsigned not_black = p[3];
      for (std::size_t channel = 0; channel < 3; ++channel) {
        const unsigned product = (255U - p[channel]) * not_black + 128;
        p[channel] = static_cast<std::uint8_t>(not_black - ((product + (product >> 8)) >> 8));
      }
    }
  }

  std::size_t left_ = 0;
};

}}}   // namespace millrace::detail
