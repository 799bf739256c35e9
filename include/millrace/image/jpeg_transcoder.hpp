// Transcodes any lossy 8-bit JPEG to a baseline JPEG with the same coefficients: the picture is the same bit for bit.
//
//   std::vector<std::byte> file = mr::transcode_jpeg(bytes);
//   auto with_restarts = mr::transcode_jpeg(bytes, {.restarts_per_row = 8});
//
// Progressive and arithmetic coding become Huffman coding in one scan, with tables made for the picture. Such files
// decode several times as fast and grow by some percent. An MCU of more than 10 blocks does not fit into one scan; such
// a picture gets one scan per component. A file that is already sequential in one scan, with the restarts asked for,
// comes back smaller or unchanged.
// Markers (EXIF, ICC, Adobe, comments) stay in their order. A rewritten file loses the bytes after the end of the image
// and the restart markers that are not asked for. Restarts divide a row of MCUs evenly: as many as possible, at most
// restarts_per_row, at least 1 per row. With restarts_per_row = 0 there are none.
// The function reads the written file again and compares it with the original before it returns.
// Errors: data_error if the bytes are not an 8-bit lossy JPEG, are damaged, or do not fit into a baseline JPEG. An
// io_error means that the comparison failed or libjpeg could not be started.
// Threads: any; calls share nothing. Memory: at most twice limits.max_memory_bytes.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/image/jpeg_header.hpp>
#include <millrace/image/libjpeg/jpeg_coefficients.hpp>
#include <millrace/image/libjpeg/jpeg_output.hpp>

#include <array>
#include <csetjmp>
#include <cstddef>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of transcode_jpeg().
struct jpeg_transcode_options {
  unsigned restarts_per_row = 0;   ///< most restart intervals in a row of MCUs; 0: no restart markers
  detail::jpeg_limits limits{};            ///< limits of each of the two readings; accept_damaged has no effect
};

namespace detail {

class jpeg_coefficient_writer : private jpeg_output {
 public:
  std::vector<std::byte> write(jpeg_coefficients& from, unsigned restart_interval) {
    if (!compress(from, restart_interval))
      throw data_error("the picture cannot be written as a baseline JPEG: " + text(),
                       "As it is, it can only be kept", {.stage = "jpeg"});
    return take();
  }

 private:
  bool compress(jpeg_coefficients& from, unsigned restart_interval) noexcept {
    if (setjmp(escape_) != 0) return false;
    jpeg_copy_critical_parameters(&from.info(), &info_);
    info_.arith_code = 0;
    info_.optimize_coding = 1;
    info_.restart_interval = restart_interval;
    // If the file has these two, they are among the markers copied below. Readers derive the color space from them.
    info_.write_JFIF_header = 0;
    info_.write_Adobe_marker = 0;
    if (!fits_one_scan()) take_a_scan_for_each();
    jpeg_write_coefficients(&info_, from.arrays());
    for (const auto& segment : from.markers())
      jpeg_write_marker(&info_, static_cast<int>(segment[1]), reinterpret_cast<const JOCTET*>(segment.data()) + 4,
                        static_cast<unsigned>(segment.size() - 4));
    jpeg_finish_compress(&info_);
    return true;
  }

  bool fits_one_scan() const noexcept {
    constexpr int max_blocks = 10;
    int blocks = 0;
    for (int c = 0; c < info_.num_components; ++c)
      blocks += info_.comp_info[c].h_samp_factor * info_.comp_info[c].v_samp_factor;
    return info_.num_components == 1 || blocks <= max_blocks;
  }

  void take_a_scan_for_each() noexcept {
    for (int c = 0; c < info_.num_components; ++c) {
      auto& scan = scans_[static_cast<std::size_t>(c)];
      scan.comps_in_scan = 1;
      scan.component_index[0] = c;
      scan.Se = 63;
    }
    info_.scan_info = scans_.data();
    info_.num_scans = info_.num_components;
  }

  std::array<jpeg_scan_info, 4> scans_{};
};

constexpr unsigned restart_interval_of(std::size_t mcus_per_row, unsigned restarts_per_row) noexcept {
  if (restarts_per_row == 0) return 0;
  std::size_t restarts = restarts_per_row < mcus_per_row ? restarts_per_row : mcus_per_row;
  while (mcus_per_row % restarts != 0) --restarts;
  return static_cast<unsigned>(mcus_per_row / restarts);
}

}  // namespace detail

/// Returns `data`, any lossy 8-bit JPEG, as a baseline JPEG with the same coefficients and markers.
/// Throws data_error if the file is damaged or does not fit into a baseline JPEG, io_error if the comparison fails.
inline std::vector<std::byte> transcode_jpeg(std::span<const std::byte> data,
                                             const jpeg_transcode_options& options = {}) {
  (void)read_jpeg_header(data);   // called for its errors: it describes best what is not a JPEG
  detail::jpeg_coefficients before(data, options.limits);
  const unsigned restart_interval = detail::restart_interval_of(before.mcus_per_row(), options.restarts_per_row);
  auto file = detail::jpeg_coefficient_writer().write(before, restart_interval);
  if (data.size() <= file.size() && before.sequential_in_one_scan() && before.restart_interval() == restart_interval)
    return {data.begin(), data.end()};
  detail::jpeg_coefficients after(file, options.limits);
  if (!after.same_as(before))
    throw io_error("the JPEG that was written does not hold the coefficients of the one that was read",
                   "Keep the original; this machine's memory or its libjpeg is broken", {.stage = "jpeg"});
  return file;
}

}}  // namespace millrace
