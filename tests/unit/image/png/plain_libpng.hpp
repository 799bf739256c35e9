// A complete PNG by libpng as its manual uses it: the samples as they are stored, or RGBA of 8 bits, and whether libpng
// refuses the file. It prints nothing.
//
//   const slow::plain_libpng p(file, slow::plain_libpng::as::rgba);
//   p.error.empty(); p.width; p.rows;           // rows before an error are there, if the file is not interlaced
#pragma once

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace slow {

class plain_libpng {
 public:
  enum class as { samples, rgba };

  std::string error{};
  std::size_t width = 0, height = 0, row_bytes = 0;
  bool too_large = false;                ///< not decoded
  std::size_t rows_read = 0;             ///< complete ones
  std::vector<std::uint8_t> pixels{};    ///< u16 in the order of the machine for samples of 16 bits

  /// Without `check_sums` neither CRC nor Adler-32 is verified. An image of more than `max_pixels` is not decoded.
  plain_libpng(std::span<const std::byte> file, as what, bool check_sums = true, std::uint64_t max_pixels = 1 << 24)
      : file_(file) {
    read(what, check_sums, max_pixels);
  }

  const std::uint8_t* row(std::size_t y) const { return pixels.data() + y * row_bytes; }

 private:
  static void on_error(png_structp png, png_const_charp text) {
    auto& self = *static_cast<plain_libpng*>(png_get_error_ptr(png));
    std::strncpy(self.text_, text, sizeof self.text_ - 1);
    std::longjmp(self.escape_, 1);
  }

  static void on_read(png_structp png, png_bytep to, png_size_t count) {
    auto& self = *static_cast<plain_libpng*>(png_get_io_ptr(png));
    if (self.file_.size() < count) png_error(png, "Read Error");
    std::memcpy(to, self.file_.data(), count);
    self.file_ = self.file_.subspan(count);
  }

  void read(as what, bool check_sums, std::uint64_t max_pixels) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, [](png_structp, png_const_charp) {});
    info_ = png_create_info_struct(png_);
    png_set_read_fn(png_, this, on_read);
    png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);
    // Among ancillary chunks, only tRNS changes pixels; the declared sizes of others are allocated.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    if (!check_sums) {
      png_set_crc_action(png_, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
      png_set_option(png_, PNG_IGNORE_ADLER32, PNG_OPTION_ON);
    }
    // Without it, distances beyond the window in the stream's header are errors.
    png_set_option(png_, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON);
    bool good = header(what, max_pixels);
    if (good && !too_large) {
      pixels.resize(row_bytes * height);
      good = passes_ == 1 ? all_rows() : full_image();
    }
    if (!good) error = text_;
    png_destroy_read_struct(&png_, &info_, nullptr);
  }

  bool header(as what, std::uint64_t max_pixels) noexcept {
    if (setjmp(escape_) != 0) return false;
    png_read_info(png_, info_);
    too_large = std::uint64_t{png_get_image_width(png_, info_)} * png_get_image_height(png_, info_) > max_pixels;
    if (too_large) return true;
    if (what == as::samples) {
      png_set_packing(png_);
      png_set_swap(png_);
    } else {
      png_set_expand(png_);
      png_set_strip_16(png_);
      png_set_gray_to_rgb(png_);
      png_set_add_alpha(png_, 255, PNG_FILLER_AFTER);
    }
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    width = png_get_image_width(png_, info_);
    height = png_get_image_height(png_, info_);
    row_bytes = png_get_rowbytes(png_, info_);
    return true;
  }

  bool all_rows() noexcept {
    if (setjmp(escape_) != 0) return false;
    for (; rows_read < height; ++rows_read) png_read_row(png_, pixels.data() + rows_read * row_bytes, nullptr);
    png_read_end(png_, info_);   // with info: unknown critical chunks are errors
    return true;
  }

  bool full_image() noexcept {
    if (setjmp(escape_) != 0) return false;
    for (int pass = 0; pass < passes_; ++pass)
      for (std::size_t y = 0; y < height; ++y) png_read_row(png_, pixels.data() + y * row_bytes, nullptr);
    rows_read = height;
    png_read_end(png_, info_);   // with info: unknown critical chunks are errors
    return true;
  }

  std::span<const std::byte> file_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;
  std::jmp_buf escape_{};
  char text_[128] = {};
};

}  // namespace slow
