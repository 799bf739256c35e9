// Reads the quantized coefficients, tables and markers of a JPEG file, without computing pixels.
//
//   transcode::jpeg_coefficients before(file, {.max_scans = 100}), after(rewritten, {});
//   bool same = after.same_as(before);                // every coefficient, table, sampling factor and marker
//   bool unchanged = before.sequential_in_one_scan(); // rewriting would not change the coding process
//   before.for_each_block([](int component, const JCOEF* block) noexcept { /* 64 numbers, row by row */ });
//
// Each component has as many blocks of 8 x 8 coefficients as its size requires. Blocks that only complete the last MCUs
// are not compared.
// Lifetime: `file` must outlive the object. Memory: 2 bytes for each coefficient, within max_memory_bytes.
// Errors: data_error for any damage, and for a progressive JPEG that lacks scans, which decoders would smooth over.
// accept_damaged has no effect, because the missing coefficients would be invented. io_error if libjpeg cannot be
// started.
// Threads: one at a time.
#pragma once

#include <millrace/image/jpeg/libjpeg/jpeg_input.hpp>
#include <millrace/image/jpeg/libjpeg/jpeg_segments.hpp>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace transcode {

class jpeg_coefficients : private millrace::detail::jpeg_input {
 public:
  jpeg_coefficients(std::span<const std::byte> file, millrace::detail::jpeg_limits limits)
      : jpeg_input("; as it is, it can only be kept") {
    limits.accept_damaged = false;
    open(file, limits);
    if (!read()) fail();
    if (lacks_scans())
      throw millrace::data_error(
          "the progressive JPEG lacks scans: it ends before its coefficients have all their bits",
          "Fetch the file again; as it is, it can only be kept", {.stage = "jpeg"});
    millrace::detail::for_each_jpeg_segment(file, [this](unsigned marker, std::span<const std::byte> segment) {
      if (millrace::detail::describes_image(marker)) markers_.push_back(segment);
    });
  }

  bool sequential_in_one_scan() const noexcept {
    return !info_.progressive_mode && !info_.arith_code && info_.input_scan_number == 1 &&
           info_.comps_in_scan == info_.num_components;
  }

  /// Returns the number of MCUs between restart markers; 0 if there are none.
  unsigned restart_interval() const noexcept { return info_.restart_interval; }
  /// Returns the number of MCUs in a row of a scan of all components.
  std::size_t mcus_per_row() const noexcept {
    if (info_.num_components == 1) return info_.comp_info[0].width_in_blocks;
    return (info_.image_width + mcu_width() - 1) / mcu_width();
  }
  /// Returns the number of rows of MCUs of such a scan.
  std::size_t mcu_rows() const noexcept {
    if (info_.num_components == 1) return info_.comp_info[0].height_in_blocks;
    return (info_.image_height + mcu_height() - 1) / mcu_height();
  }
  /// Returns the width of its MCUs in pixels; mcu_height() likewise.
  std::size_t mcu_width() const noexcept { return 8 * (one_component() ? 1 : factor(info_.max_h_samp_factor)); }
  std::size_t mcu_height() const noexcept { return 8 * (one_component() ? 1 : factor(info_.max_v_samp_factor)); }

  int components() const noexcept { return info_.num_components; }
  /// Returns true if an MCU of all components fits into a baseline scan; else a file has a scan for each component.
  bool fits_one_scan() const noexcept {
    constexpr std::size_t largest_mcu = 10;
    std::size_t blocks = 0;
    for (int c = 0; c < info_.num_components; ++c) blocks += blocks_in_mcu(c);
    return one_component() || blocks <= largest_mcu;
  }
  /// Returns the number of a component's blocks in an MCU of all components.
  std::size_t blocks_in_mcu(int component) const noexcept {
    if (one_component()) return 1;
    const auto& layout = info_.comp_info[component];
    return factor(layout.h_samp_factor) * factor(layout.v_samp_factor);
  }
  /// Returns true for a component that libjpeg's writer codes with the second pair of Huffman codes.
  bool is_chroma(int component) const noexcept {
    const bool has_chroma = info_.jpeg_color_space == JCS_YCbCr || info_.jpeg_color_space == JCS_YCCK;
    return has_chroma && (component == 1 || component == 2);
  }

  /// Calls use(component, block) for each block, in the order of the scans that a baseline file has. A block is 64
  /// numbers, row by row, or null: it only completes the last MCUs. `use` must not throw.
  /// Returns false if libjpeg could not provide the blocks.
  template <class Use>
  bool for_each_block(const Use& use) noexcept {
    if (setjmp(escape_) != 0) return false;
    if (fits_one_scan() && !one_component()) {
      for (std::size_t y = 0; y < mcu_rows(); ++y)
        for (std::size_t x = 0; x < mcus_per_row(); ++x)
          for (int c = 0; c < info_.num_components; ++c) use_mcu(c, x, y, use);
      return true;
    }
    for (int c = 0; c < info_.num_components; ++c)
      for (JDIMENSION y = 0; y < info_.comp_info[c].height_in_blocks; ++y) {
        const JBLOCK* blocks = row(c, y);
        for (JDIMENSION x = 0; x < info_.comp_info[c].width_in_blocks; ++x) use(c, blocks[x]);
      }
    return true;
  }

  bool same_as(jpeg_coefficients& other) noexcept {
    if (setjmp(escape_) != 0 || setjmp(other.escape_) != 0) return false;
    const auto &a = info_, &b = other.info_;
    if (a.image_width != b.image_width || a.image_height != b.image_height || a.num_components != b.num_components ||
        a.jpeg_color_space != b.jpeg_color_space || !same_markers(other))
      return false;
    for (int c = 0; c < a.num_components; ++c)
      if (!same_layout(other, c) || !same_blocks(other, c)) return false;
    return true;
  }

  /// Returns libjpeg's state, and arrays() the coefficient arrays, for libjpeg's writer.
  jpeg_decompress_struct& info() noexcept { return info_; }
  jvirt_barray_ptr* arrays() noexcept { return arrays_; }
  /// Returns the application segments and comments, complete and in the order of the file.
  std::span<const std::span<const std::byte>> markers() const noexcept { return markers_; }

 private:
  bool read() noexcept {
    if (setjmp(escape_) != 0) return false;
    arrays_ = jpeg_read_coefficients(&info_);
    return true;
  }

  bool one_component() const noexcept { return info_.num_components == 1; }
  static std::size_t factor(int blocks) noexcept { return static_cast<std::size_t>(blocks); }

  /// Uses a component's blocks of the MCU that is x-th from the left and y-th from the top.
  template <class Use>
  void use_mcu(int component, std::size_t x, std::size_t y, const Use& use) {
    const auto& layout = info_.comp_info[component];
    const std::size_t width = factor(layout.h_samp_factor), height = factor(layout.v_samp_factor);
    for (std::size_t j = y * height; j < (y + 1) * height; ++j) {
      const JBLOCK* blocks = j < layout.height_in_blocks ? row(component, static_cast<JDIMENSION>(j)) : nullptr;
      for (std::size_t i = x * width; i < (x + 1) * width; ++i)
        use(component, blocks && i < layout.width_in_blocks ? blocks[i] : nullptr);
    }
  }

  bool lacks_scans() const noexcept {
    if (!info_.progressive_mode) return false;
    for (int c = 0; c < info_.num_components; ++c)
      for (int k = 0; k < 64; ++k)
        if (info_.coef_bits[c][k] != 0) return true;
    return false;
  }

  bool same_markers(const jpeg_coefficients& other) const noexcept {
    return std::equal(markers_.begin(), markers_.end(), other.markers_.begin(), other.markers_.end(),
                      [](const auto& a, const auto& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); });
  }

  /// Returns the quantization table. A component without a scan has it only where the headers put it.
  const JQUANT_TBL* quantiser(const jpeg_component_info& c) const noexcept {
    return c.quant_table ? c.quant_table : info_.quant_tbl_ptrs[c.quant_tbl_no];
  }

  bool same_layout(const jpeg_coefficients& other, int component) const noexcept {
    const auto &a = info_.comp_info[component], &b = other.info_.comp_info[component];
    const auto *qa = quantiser(a), *qb = other.quantiser(b);
    return a.component_id == b.component_id && a.h_samp_factor == b.h_samp_factor &&
           a.v_samp_factor == b.v_samp_factor && a.width_in_blocks == b.width_in_blocks &&
           a.height_in_blocks == b.height_in_blocks && qa && qb &&
           std::memcmp(qa->quantval, qb->quantval, sizeof qa->quantval) == 0;
  }

  bool same_blocks(jpeg_coefficients& other, int component) noexcept {
    const auto& layout = info_.comp_info[component];
    for (JDIMENSION y = 0; y < layout.height_in_blocks; ++y)
      if (std::memcmp(row(component, y), other.row(component, y), layout.width_in_blocks * sizeof(JBLOCK)) != 0)
        return false;
    return true;
  }
  const JBLOCK* row(int component, JDIMENSION y) noexcept {
    auto* info = reinterpret_cast<j_common_ptr>(&info_);
    return *info_.mem->access_virt_barray(info, arrays_[component], y, 1, 0);
  }

  jvirt_barray_ptr* arrays_ = nullptr;
  std::vector<std::span<const std::byte>> markers_;
};

}   // namespace transcode
