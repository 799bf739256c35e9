// Transcodes any lossy 8-bit JPEG to a baseline JPEG with the same coefficients: the image is the same bit for bit.
//
//   std::vector<std::byte> file = transcode::transcode_jpeg(bytes);
//   auto with_restarts = transcode::transcode_jpeg(bytes, {.restarts_per_row = 8});
//   auto by_size = transcode::transcode_jpeg(bytes, {.restart_growth = 0.02});
//   auto with_shared_codes = transcode::transcode_jpeg(bytes, {.codes = &codes});      // see jpeg_codes.hpp
//
// Progressive and arithmetic coding become Huffman coding in one scan, with optimal tables. Such files decode several
// times faster and grow by some percent. An MCU of more than 10 blocks does not fit into one scan; such an image gets
// one scan per component. A file that is already sequential in one scan, with the requested restarts, gets smaller or
// stays unchanged, unless shared codes are requested. Optimal codes are the smallest, but a decoder builds tables for
// each image. keep_standard_codes avoids that for most files.
//
// Markers (EXIF, ICC, Adobe, comments) keep their order. A rewritten file loses the bytes after the end of the image,
// and restart markers that were not requested. A decoder can start after a restart marker, and therefore skip more of
// the image for a crop. restarts_per_row divides a row of MCUs evenly: into at most that number of intervals, at least
// 1. restart_growth selects the shortest interval of at least 64 pixels with which the coded data grow by at most that
// share. The default is no restart markers. The function reads the written file again and compares it with the
// original.
// Errors: data_error if the bytes are not an 8-bit lossy JPEG, are damaged, or do not fit into a baseline JPEG.
// io_error if the comparison failed or libjpeg could not be started. setup_error for impossible options.
// Threads: any; calls share nothing. A transcoder is used by one thread at a time. The bytes and codes must outlive it.
// Memory: at most twice limits.max_memory_bytes.
#pragma once

#include "jpeg_codes.hpp"
#include "jpeg_coefficients.hpp"
#include "jpeg_symbols.hpp"

#include <millrace/base/error.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/image/jpeg/libjpeg/jpeg_output.hpp>
#include <millrace/image/plan/random_crop.hpp>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace transcode {

/// Options of transcode_jpeg(). Set at most one of the three options for restarts.
struct jpeg_transcode_options {
  unsigned restarts_per_row = 0;       ///< limit of restart intervals in a row of MCUs; 0: no restart markers
  unsigned restart_interval = 0;       ///< MCUs between restart markers, at most 65,535; 0: no restart markers
  double restart_growth = 0;           ///< limit of the growth by restart markers, at most 1; 0: no restart markers
  const jpeg_codes* codes = nullptr;   ///< shared codes; null: optimal codes for the image
  bool keep_standard_codes = false;    ///< without `codes`, a file with the codes of T.81 annex K keeps them
  millrace::detail::jpeg_limits limits{};   ///< of each of the two readings; accept_damaged has no effect
};

class jpeg_coefficient_writer : private millrace::detail::jpeg_output {
 public:
  struct coding {
    unsigned restart_interval = 0;
    const jpeg_codes* codes = nullptr;
    bool keep_standard_codes = false;
  };
  std::vector<std::byte> write(jpeg_coefficients& from, const coding& as);

 private:
  bool compress(jpeg_coefficients& from, const coding& as) noexcept;
  bool has_standard_codes(jpeg_coefficients& from) const noexcept;
  void use_separate_scans() noexcept;
  void set_codes(const jpeg_codes& codes) noexcept;

  std::array<jpeg_scan_info, 4> scans_{};
};

constexpr unsigned restart_interval_of(std::size_t mcus_per_row, unsigned restarts_per_row) noexcept {
  if (restarts_per_row == 0) return 0;
  std::size_t restarts = restarts_per_row < mcus_per_row ? restarts_per_row : mcus_per_row;
  while (mcus_per_row % restarts != 0) --restarts;
  return static_cast<unsigned>(mcus_per_row / restarts);
}

/// The MCUs of an image that a decoder reads for a crop.
struct jpeg_walk {
  std::uint64_t all = 0;                ///< MCUs of the image
  std::uint64_t without_restarts = 0;   ///< from the first to the last of the crop
  std::uint64_t with_restarts = 0;      ///< in each row from a restart before the crop to its right edge
};

/// The steps of transcode_jpeg().
class jpeg_transcoder {
 public:
  /// Reads the coefficients and chooses the restart interval. Throws as transcode_jpeg() does.
  explicit jpeg_transcoder(std::span<const std::byte> data, const jpeg_transcode_options& options = {});

  /// Returns the number of MCUs between restart markers; 0: none.
  unsigned restart_interval() const noexcept { return restart_interval_; }
  /// Returns an estimate of the bytes that restart markers add, with an error of some percent.
  double restart_bytes();
  /// Draws a random resized crop and returns the MCUs that it needs.
  jpeg_walk walk_of_random_crop(millrace::rng& random, const millrace::random_crop_options& options = {}) const;

  /// Adds the symbols of the resulting file. Throws data_error if they do not fit into a baseline JPEG.
  void count_symbols(jpeg_symbol_counts& counts) { symbols().add_to(counts, restart_interval_); }

  /// Returns the baseline JPEG.
  std::vector<std::byte> write();

 private:
  const jpeg_symbols& symbols();

  std::span<const std::byte> data_;
  jpeg_transcode_options options_;
  millrace::picture_size size_;
  jpeg_coefficients before_;
  std::optional<jpeg_symbols> symbols_;   // counted when needed
  unsigned restart_interval_ = 0;
};

constexpr millrace::picture_size size_in(const millrace::jpeg_header& header) noexcept {
  return {.width = header.width, .height = header.height};
}

inline std::vector<std::byte> jpeg_coefficient_writer::write(jpeg_coefficients& from, const coding& as) {
  if (!compress(from, as))
    throw millrace::data_error("the image cannot be written as a baseline JPEG: " + text(), "Keep the original file",
                               {.stage = "jpeg"});
  return take();
}

inline bool jpeg_coefficient_writer::compress(jpeg_coefficients& from, const coding& as) noexcept {
  if (setjmp(escape_) != 0) return false;
  jpeg_copy_critical_parameters(&from.info(), &info_);
  info_.arith_code = 0;
  info_.optimize_coding = 1;
  if (as.codes) set_codes(*as.codes);
  else if (as.keep_standard_codes && has_standard_codes(from)) info_.optimize_coding = 0;
  info_.restart_interval = as.restart_interval;
  // If the file has these two, they are among the markers copied below. Readers derive the color space from them.
  info_.write_JFIF_header = 0;
  info_.write_Adobe_marker = 0;
  if (!from.fits_one_scan()) use_separate_scans();
  jpeg_write_coefficients(&info_, from.arrays());
  for (const auto& segment : from.markers())
    jpeg_write_marker(&info_, static_cast<int>(segment[1]), reinterpret_cast<const JOCTET*>(segment.data()) + 4,
                      static_cast<unsigned>(segment.size() - 4));
  jpeg_finish_compress(&info_);
  return true;
}

inline void jpeg_coefficient_writer::use_separate_scans() noexcept {
  for (int c = 0; c < info_.num_components; ++c) {
    auto& scan = scans_[static_cast<std::size_t>(c)];
    scan.comps_in_scan = 1;
    scan.component_index[0] = c;
    scan.Se = 63;
  }
  info_.scan_info = scans_.data();
  info_.num_scans = info_.num_components;
}

/// The writer of libjpeg starts with the standard codes.
inline bool jpeg_coefficient_writer::has_standard_codes(jpeg_coefficients& from) const noexcept {
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

inline void jpeg_coefficient_writer::set_codes(const jpeg_codes& codes) noexcept {
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

inline void check_restarts(const jpeg_transcode_options& options) {
  const int restart_options = (options.restarts_per_row != 0) + (options.restart_interval != 0) +
                              (options.restart_growth != 0);
  constexpr unsigned longest = 65'535;
  if (restart_options > 1 || options.restart_interval > longest ||
      !(options.restart_growth >= 0 && options.restart_growth <= 1))
    throw millrace::setup_error("the restarts of a JPEG are impossible: got " +
                                    std::to_string(options.restarts_per_row) + " per row, an interval of " +
                                    std::to_string(options.restart_interval) + ", a growth of " +
                                    std::to_string(options.restart_growth) +
                                    "; expected one of them, an interval of at most 65535, a growth of 0 to 1",
                                "Set one of the three", {.stage = "jpeg"});
}

inline jpeg_transcoder::jpeg_transcoder(std::span<const std::byte> data, const jpeg_transcode_options& options)
    // Reads the header first, because its errors describe files that are not JPEGs best.
    : data_(data), options_(options), size_(size_in(millrace::read_jpeg_header(data))), before_(data, options.limits) {
  check_restarts(options);
  if (options.restarts_per_row != 0)
    restart_interval_ = restart_interval_of(before_.mcus_per_row(), options.restarts_per_row);
  else if (options.restart_interval != 0) restart_interval_ = options.restart_interval;
  else if (options.restart_growth != 0) {
    constexpr std::size_t least_pixels = 64;
    const std::size_t shortest = std::max<std::size_t>(1, least_pixels / before_.mcu_width());
    restart_interval_ = symbols().interval_within({.growth = options.restart_growth, .shortest = shortest});
  }
}

inline const jpeg_symbols& jpeg_transcoder::symbols() {
  if (!symbols_) symbols_.emplace(before_);
  return *symbols_;
}

inline double jpeg_transcoder::restart_bytes() {
  if (restart_interval_ == 0) return 0;
  return symbols().coded_bytes(restart_interval_) - symbols().coded_bytes(0);
}

inline jpeg_walk jpeg_transcoder::walk_of_random_crop(millrace::rng& random,
                                                      const millrace::random_crop_options& options) const {
  const millrace::crop_box box = millrace::detail::random_crop_box(size_, random, options);
  const std::size_t width = before_.mcu_width(), height = before_.mcu_height(), in_row = before_.mcus_per_row();
  const std::size_t left = box.left / width, right = (box.left + box.width + width - 1) / width;
  const std::size_t top = box.top / height, bottom = (box.top + box.height + height - 1) / height;
  jpeg_walk walk{
      .all = in_row * before_.mcu_rows(), .without_restarts = (bottom - 1) * in_row + right, .with_restarts = 0};
  if (restart_interval_ == 0) walk.with_restarts = walk.without_restarts;
  else
    for (std::size_t row = top, read = 0; row < bottom; ++row) {
      const std::size_t first = row * in_row + left, end = row * in_row + right;
      walk.with_restarts += end - std::max(read, first - first % restart_interval_);
      read = end;
    }
  return walk;
}

inline std::vector<std::byte> jpeg_transcoder::write() {
  if (options_.codes || options_.keep_standard_codes) {   // libjpeg does not check this
    jpeg_symbol_counts counts;
    count_symbols(counts);
  }
  auto file = jpeg_coefficient_writer().write(before_, {.restart_interval = restart_interval_,
                                                        .codes = options_.codes,
                                                        .keep_standard_codes = options_.keep_standard_codes});
  if (!options_.codes && data_.size() <= file.size() && before_.sequential_in_one_scan() &&
      before_.restart_interval() == restart_interval_)
    return {data_.begin(), data_.end()};
  jpeg_coefficients after(file, options_.limits);
  if (!after.same_as(before_))
    throw millrace::io_error("the written JPEG does not contain the coefficients of the original",
                             "Keep the original; the memory or the libjpeg of this machine is broken",
                             {.stage = "jpeg"});
  return file;
}

/// Returns `data`, any lossy 8-bit JPEG, as a baseline JPEG with the same coefficients and markers.
/// Throws data_error if the file is damaged or does not fit into a baseline JPEG, io_error if the comparison fails, and
/// setup_error for impossible options.
inline std::vector<std::byte> transcode_jpeg(std::span<const std::byte> data,
                                             const jpeg_transcode_options& options = {}) {
  return jpeg_transcoder(data, options).write();
}

}   // namespace transcode
