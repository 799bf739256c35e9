// Reads what a JPEG file stores before pixels are made: its quantized coefficients, tables and markers.
//
//   mr::detail::jpeg_coefficients before(file, {.max_scans = 100}), after(rewritten, {});
//   bool same = after.same_as(before);                // every coefficient, table, sampling factor and marker
//   bool kept = before.sequential_in_one_scan();      // rewriting would not change the coding process
//
// Each component has as many blocks of 8 x 8 coefficients as its size needs. The blocks that only fill up the last MCUs
// are not compared.
// Lifetime: `file` must outlive the object. Memory: 2 bytes for each coefficient, within max_memory_bytes.
// Errors: data_error for any damage, and for a progressive JPEG that lacks scans, which decoders would smooth over.
// accept_damaged has no effect, because the missing coefficients would be made up. io_error if libjpeg cannot be
// started. Threads: one at a time.
#pragma once

#include <millrace/image/libjpeg/jpeg_input.hpp>
#include <millrace/image/libjpeg/jpeg_segments.hpp>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class jpeg_coefficients : private jpeg_input {
 public:
  jpeg_coefficients(std::span<const std::byte> file, jpeg_limits limits)
      : jpeg_input("; as it is, it can only be kept") {
    limits.accept_damaged = false;
    open(file, limits);
    if (!read()) fail();
    if (lacks_scans())
      throw data_error("the progressive JPEG lacks scans: it ends before its coefficients have all their bits",
                       "Fetch the file again; as it is, it can only be kept", {.stage = "jpeg"});
    for_each_jpeg_segment(file, [this](unsigned marker, std::span<const std::byte> segment) {
      if (describes_the_picture(marker)) markers_.push_back(segment);
    });
  }

  bool sequential_in_one_scan() const noexcept {
    return !info_.progressive_mode && !info_.arith_code && info_.input_scan_number == 1 &&
           info_.comps_in_scan == info_.num_components;
  }

  /// Returns the number of MCUs between restart markers; 0 if there are none.
  unsigned restart_interval() const noexcept { return info_.restart_interval; }
  /// Returns the number of MCUs in a row of a scan that holds all components.
  std::size_t mcus_per_row() const noexcept {
    if (info_.num_components == 1) return info_.comp_info[0].width_in_blocks;
    const auto across = static_cast<std::size_t>(info_.max_h_samp_factor) * 8;
    return (info_.image_width + across - 1) / across;
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
  /// Returns the application segments and comments, each as a whole, in the order of the file.
  std::span<const std::span<const std::byte>> markers() const noexcept { return markers_; }

 private:
  bool read() noexcept {
    if (setjmp(escape_) != 0) return false;
    arrays_ = jpeg_read_coefficients(&info_);
    return true;
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

}}}  // namespace millrace::detail
