// Defines what jpeg_transcoder.hpp declares.
#pragma once

#include <millrace/image/jpeg/jpeg_transcoder.hpp>

#include <millrace/base/error.hpp>

#include <algorithm>
#include <csetjmp>
#include <iterator>
#include <numeric>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

constexpr picture_size size_in(const jpeg_header& header) noexcept {
  return {.width = header.width, .height = header.height};
}

MILLRACE_INLINE std::vector<std::byte> jpeg_coefficient_writer::write(jpeg_coefficients& from, const coding& as) {
  if (!compress(from, as))
    throw data_error("the picture cannot be written as a baseline JPEG: " + text(),
                     "As it is, it can only be kept", {.stage = "jpeg"});
  return take();
}

MILLRACE_INLINE bool jpeg_coefficient_writer::compress(jpeg_coefficients& from, const coding& as) noexcept {
  if (setjmp(escape_) != 0) return false;
  jpeg_copy_critical_parameters(&from.info(), &info_);
  info_.arith_code = 0;
  info_.optimize_coding = 1;
  if (as.codes) take_codes(*as.codes);
  else if (as.keep_standard_codes && has_standard_codes(from)) info_.optimize_coding = 0;
  info_.restart_interval = as.restart_interval;
  // If the file has these two, they are among the markers copied below. Readers derive the color space from them.
  info_.write_JFIF_header = 0;
  info_.write_Adobe_marker = 0;
  if (!from.fits_one_scan()) take_a_scan_for_each();
  jpeg_write_coefficients(&info_, from.arrays());
  for (const auto& segment : from.markers())
    jpeg_write_marker(&info_, static_cast<int>(segment[1]), reinterpret_cast<const JOCTET*>(segment.data()) + 4,
                      static_cast<unsigned>(segment.size() - 4));
  jpeg_finish_compress(&info_);
  return true;
}

MILLRACE_INLINE void jpeg_coefficient_writer::take_a_scan_for_each() noexcept {
  for (int c = 0; c < info_.num_components; ++c) {
    auto& scan = scans_[static_cast<std::size_t>(c)];
    scan.comps_in_scan = 1;
    scan.component_index[0] = c;
    scan.Se = 63;
  }
  info_.scan_info = scans_.data();
  info_.num_scans = info_.num_components;
}

/// The standard's codes are those that libjpeg's writer begins with.
MILLRACE_INLINE bool jpeg_coefficient_writer::has_standard_codes(jpeg_coefficients& from) const noexcept {
  if (!from.sequential_in_one_scan()) return false;
  const auto same = [](const JHUFF_TBL* a, const JHUFF_TBL* b) {
    if (!a || !b || !std::equal(a->bits + 1, a->bits + 17, b->bits + 1)) return false;
    const std::size_t symbols = std::accumulate(a->bits + 1, a->bits + 17, std::size_t{0});
    return std::equal(a->huffval, a->huffval + std::min<std::size_t>(symbols, 256), b->huffval);
  };
  const auto& read = from.info();
  for (int c = 0; c < info_.num_components; ++c) {
    const auto &was = read.comp_info[c], &is = info_.comp_info[c];
    if (!same(read.dc_huff_tbl_ptrs[was.dc_tbl_no], info_.dc_huff_tbl_ptrs[is.dc_tbl_no]) ||
        !same(read.ac_huff_tbl_ptrs[was.ac_tbl_no], info_.ac_huff_tbl_ptrs[is.ac_tbl_no]))
      return false;
  }
  return true;
}

MILLRACE_INLINE void jpeg_coefficient_writer::take_codes(const jpeg_codes& codes) noexcept {
  const auto set = [this](JHUFF_TBL*& table, std::span<const std::uint8_t> code) {
    if (!table) table = jpeg_alloc_huff_table(reinterpret_cast<j_common_ptr>(&info_));
    std::copy_n(code.begin(), 16, table->bits + 1);
    std::fill(std::begin(table->huffval), std::end(table->huffval), JOCTET{0});
    std::copy(code.begin() + 16, code.end(), table->huffval);
  };
  for (std::size_t t = 0; t < jpeg_symbol_counts::tables; ++t) {
    set(info_.dc_huff_tbl_ptrs[t], codes.dc(t));
    set(info_.ac_huff_tbl_ptrs[t], codes.ac(t));
  }
  info_.optimize_coding = 0;
}

MILLRACE_INLINE void check_restarts(const jpeg_transcode_options& options) {
  const int asked = (options.restarts_per_row != 0) + (options.restart_interval != 0) + (options.restart_growth != 0);
  constexpr unsigned longest = 65'535;
  if (asked > 1 || options.restart_interval > longest || !(options.restart_growth >= 0 && options.restart_growth <= 1))
    throw setup_error("the restarts of a JPEG are impossible: got " + std::to_string(options.restarts_per_row) +
                          " per row, an interval of " + std::to_string(options.restart_interval) + ", a growth of " +
                          std::to_string(options.restart_growth) +
                          "; expected one of them, an interval of at most 65535, a growth of 0 to 1",
                      "Give one of the three", {.stage = "jpeg"});
}

}  // namespace detail

MILLRACE_INLINE jpeg_transcoder::jpeg_transcoder(std::span<const std::byte> data,
                                                 const jpeg_transcode_options& options)
    // The header is read first for its errors: it describes best what is not a JPEG.
    : data_(data), options_(options), size_(detail::size_in(read_jpeg_header(data))), before_(data, options.limits) {
  detail::check_restarts(options);
  if (options.restarts_per_row != 0)
    restart_interval_ = detail::restart_interval_of(before_.mcus_per_row(), options.restarts_per_row);
  else if (options.restart_interval != 0)
    restart_interval_ = options.restart_interval;
  else if (options.restart_growth != 0) {
    constexpr std::size_t least_pixels = 64;
    const std::size_t shortest = std::max<std::size_t>(1, least_pixels / before_.mcu_width());
    restart_interval_ = symbols().interval_within({.growth = options.restart_growth, .shortest = shortest});
  }
}

MILLRACE_INLINE const detail::jpeg_symbols& jpeg_transcoder::symbols() {
  if (!symbols_) symbols_.emplace(before_);
  return *symbols_;
}

MILLRACE_INLINE double jpeg_transcoder::restart_bytes() {
  if (restart_interval_ == 0) return 0;
  return symbols().coded_bytes(restart_interval_) - symbols().coded_bytes(0);
}

MILLRACE_INLINE jpeg_walk jpeg_transcoder::walk_of_random_crop(rng& random, const random_crop_options& options) const {
  const crop_box box = detail::random_crop_box(size_, random, options);
  const std::size_t width = before_.mcu_width(), height = before_.mcu_height(), in_row = before_.mcus_per_row();
  const std::size_t left = box.left / width, right = (box.left + box.width + width - 1) / width;
  const std::size_t top = box.top / height, bottom = (box.top + box.height + height - 1) / height;
  jpeg_walk walk{.all = in_row * before_.mcu_rows(), .without_restarts = (bottom - 1) * in_row + right,
                 .with_restarts = 0};
  if (restart_interval_ == 0) walk.with_restarts = walk.without_restarts;
  else
    for (std::size_t row = top, read = 0; row < bottom; ++row) {
      const std::size_t first = row * in_row + left, end = row * in_row + right;
      walk.with_restarts += end - std::max(read, first - first % restart_interval_);
      read = end;
    }
  return walk;
}

MILLRACE_INLINE std::vector<std::byte> jpeg_transcoder::write() {
  if (options_.codes || options_.keep_standard_codes) {   // libjpeg would not see what does not fit
    jpeg_symbol_counts counts;
    count_symbols(counts);
  }
  auto file = detail::jpeg_coefficient_writer().write(before_, {.restart_interval = restart_interval_,
                                                                .codes = options_.codes,
                                                                .keep_standard_codes = options_.keep_standard_codes});
  if (!options_.codes && data_.size() <= file.size() && before_.sequential_in_one_scan() &&
      before_.restart_interval() == restart_interval_)
    return {data_.begin(), data_.end()};
  detail::jpeg_coefficients after(file, options_.limits);
  if (!after.same_as(before_))
    throw io_error("the JPEG that was written does not hold the coefficients of the one that was read",
                   "Keep the original; this machine's memory or its libjpeg is broken", {.stage = "jpeg"});
  return file;
}

MILLRACE_INLINE std::vector<std::byte> transcode_jpeg(std::span<const std::byte> data,
                                                      const jpeg_transcode_options& options) {
  return jpeg_transcoder(data, options).write();
}

}}  // namespace millrace
