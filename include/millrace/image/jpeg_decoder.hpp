// One libjpeg decompressor, reused from picture to picture, that decodes a region row by row into a sink.
//
//   mr::jpeg_decoder d;                                  // kept in a worker's scratch
//   d.open(bytes, {.max_scans = 100});                   // parses the header
//   d.decode({.left = 60, .top = 40, .right = 300, .bottom = 200}, sink);
//   d.counts().damaged;                                  // pictures accepted in spite of damage
//
// A sink has set_source(left, width), next_row(), commit_row() and wants_rows(); see resizer. It gets RGBX rows from
// `top` on. Only the region is decoded where libjpeg gives the same pixels as for the whole picture; decoding stops
// below it, so damage below it is not seen. Errors: data_error. Threads: one at a time; one picture begins and ends on
// one thread. libjpeg leaves by longjmp, which never crosses an object with a destructor: every function that calls it
// is noexcept, owns nothing, and returns false, upon which the caller throws.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/image/libjpeg.hpp>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace millrace::inline MILLRACE_ABI {

/// What a decoder will spend on one picture.
struct jpeg_limits {
  int max_scans = 100;                                    ///< of a progressive JPEG; each one walks the whole picture
  std::size_t max_memory_bytes = std::size_t{512} << 20;  ///< of libjpeg's buffers: a progressive JPEG's coefficients
  bool accept_damaged = false;                            ///< pixels of a cut or corrupt file are taken, and counted
};

/// What a decoder has seen since it was made.
struct jpeg_counts {
  std::uint64_t pictures = 0;      ///< decoded
  std::uint64_t progressive = 0;   ///< of them
  std::uint64_t damaged = 0;       ///< of them, accepted in spite of damage
  std::uint64_t warnings = 0;      ///< of libjpeg, of any kind
};

/// Rows [top, bottom) and columns [left, right) of the decoded (perhaps scaled) picture.
struct decode_region {
  std::size_t left = 0, top = 0, right = 0, bottom = 0;
};

class jpeg_decoder {
 public:
  jpeg_decoder() {
    if (create()) return;
    jpeg_destroy_decompress(&info_);
    throw io_error("libjpeg could not be started: " + printable(text()), "Free memory", {.stage = "jpeg"});
  }
  jpeg_decoder(const jpeg_decoder&) = delete;
  jpeg_decoder& operator=(const jpeg_decoder&) = delete;
  ~jpeg_decoder() { jpeg_destroy_decompress(&info_); }

  /// Reads the header and chooses `eighths` / 8 of the size (1, 2, 4 or 8). `data` is good until decode() returns.
  void open(std::span<const std::byte> data, const jpeg_limits& limits, unsigned eighths = 8) {
    limits_ = limits;
    damaged_ = false;
    progress_.max_scans = limits.max_scans;
    if (!read_header(data, eighths)) fail();
  }

  std::size_t stored_width() const noexcept { return info_.image_width; }
  std::size_t stored_height() const noexcept { return info_.image_height; }
  int components() const noexcept { return info_.num_components; }

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
    ++counts_.pictures;
    counts_.progressive += info_.progressive_mode ? 1 : 0;
    counts_.damaged += damaged_ ? 1 : 0;
    abandon();
  }

  /// Drops a picture that was opened and will not be decoded.
  void abandon() noexcept { jpeg_abort_decompress(&info_); }

  const jpeg_counts& counts() const noexcept { return counts_; }

 private:
  enum : int { no_code = 0, too_many_scans = -1 };

  struct scan_watch {
    jpeg_progress_mgr base;
    int max_scans;
  };

  static jpeg_decoder& self(j_common_ptr info) noexcept { return *static_cast<jpeg_decoder*>(info->client_data); }

  [[noreturn]] static void leave(j_common_ptr info) {
    jpeg_decoder& d = self(info);
    d.code_ = info->err->msg_code;
    info->err->format_message(info, d.text_);
    std::longjmp(d.escape_, 1);
  }

  static void on_message(j_common_ptr info, int level) {
    if (level >= 0) return;
    jpeg_decoder& d = self(info);
    ++d.counts_.warnings;
    switch (info->err->msg_code) {
      case JWRN_ARITH_BAD_CODE:
      case JWRN_EXTRANEOUS_DATA:
      case JWRN_HIT_MARKER:
      case JWRN_HUFF_BAD_CODE:
      case JWRN_JPEG_EOF:
      case JWRN_MUST_RESYNC:
      case JWRN_BOGUS_PROGRESSION:
        d.damaged_ = true;
        if (!d.limits_.accept_damaged) leave(info);
        break;
      default: break;
    }
  }

  static void on_progress(j_common_ptr info) {
    jpeg_decoder& d = self(info);
    if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= d.progress_.max_scans) return;
    d.code_ = too_many_scans;
    std::longjmp(d.escape_, 1);
  }

  bool create() noexcept {
    info_.err = jpeg_std_error(&messages_);
    messages_.error_exit = [](j_common_ptr info) { leave(info); };
    messages_.emit_message = [](j_common_ptr info, int level) { on_message(info, level); };
    messages_.output_message = [](j_common_ptr) {};
    info_.client_data = this;
    if (setjmp(escape_) != 0) return false;
    jpeg_create_decompress(&info_);
    info_.client_data = this;
    progress_.base.progress_monitor = [](j_common_ptr info) { on_progress(info); };
    info_.progress = &progress_.base;
    return true;
  }

  bool read_header(std::span<const std::byte> data, unsigned eighths) noexcept {
    if (setjmp(escape_) != 0) return false;
    constexpr std::size_t most = std::numeric_limits<long>::max();
    info_.mem->max_memory_to_use = static_cast<long>(std::min(limits_.max_memory_bytes, most));
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(data.data()), data.size());
    jpeg_read_header(&info_, 1);
    info_.out_color_space = info_.num_components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
    info_.dct_method = JDCT_ISLOW;
    info_.do_fancy_upsampling = 1;
    info_.scale_num = eighths;
    info_.scale_denom = 8;
    return true;
  }

  /// Whether libjpeg decodes a region of this picture to the same pixels as the whole. 2.1.5 reads uninitialised memory
  /// when it crops a scaled picture of 4x2 luma sampling; block smoothing of several scans looks beyond the region.
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
    // One pixel of margin on each side: fancy upsampling looks at its neighbours. And never as little as one sample of
    // chroma, for which libjpeg would repeat samples, though not in the whole picture.
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
      const bool wanted = info_.output_scanline >= region.top;
      JSAMPROW row = sink.next_row();
      jpeg_read_scanlines(&info_, &row, 1);
      if (!wanted) continue;
      if (info_.out_color_space == JCS_CMYK) cmyk_to_rgb(row, info_.output_width);
      sink.commit_row();
    }
    return true;
  }

  /// JPEG files hold CMYK inverted, as Adobe does; the arithmetic is Pillow's (products of 8-bit fractions, rounded).
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

  std::string text() const { return text_; }

  [[noreturn]] void fail() {
    abandon();
    const place where{.stage = "jpeg"};
    if (code_ == too_many_scans)
      throw data_error("the JPEG has more than " + std::to_string(limits_.max_scans) + " scans",
                       "Raise max_scans if the file is meant to be so", where);
    if (code_ == JERR_NO_BACKING_STORE || code_ == JERR_OUT_OF_MEMORY)
      throw data_error("decoding the JPEG needs more than " + std::to_string(limits_.max_memory_bytes) +
                           " bytes of memory (libjpeg: " + text() + ")",
                       "Raise max_memory_bytes, or convert the file to a baseline JPEG", where);
    throw data_error("the JPEG cannot be decoded: " + printable(text()),
                     damaged_ ? "Fetch the file again; accept_damaged takes what can be decoded of it" :
                                "Fetch the file again, or leave the sample out", where);
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr messages_{};
  scan_watch progress_{};
  std::jmp_buf escape_{};
  int code_ = no_code;
  char text_[JMSG_LENGTH_MAX] = {};
  jpeg_limits limits_;
  bool damaged_ = false;
  std::size_t left_ = 0;
  jpeg_counts counts_;
};

}  // namespace millrace::inline MILLRACE_ABI
