// Defines what jpeg_transcoder.hpp declares.
#pragma once

#include <millrace/image/jpeg_transcoder.hpp>

#include <millrace/base/error.hpp>

#include <csetjmp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::vector<std::byte> jpeg_coefficient_writer::write(jpeg_coefficients& from,
                                                                      unsigned restart_interval) {
  if (!compress(from, restart_interval))
    throw data_error("the picture cannot be written as a baseline JPEG: " + text(),
                     "As it is, it can only be kept", {.stage = "jpeg"});
  return take();
}

MILLRACE_INLINE bool jpeg_coefficient_writer::compress(jpeg_coefficients& from, unsigned restart_interval) noexcept {
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

MILLRACE_INLINE bool jpeg_coefficient_writer::fits_one_scan() const noexcept {
  constexpr int max_blocks = 10;
  int blocks = 0;
  for (int c = 0; c < info_.num_components; ++c)
    blocks += info_.comp_info[c].h_samp_factor * info_.comp_info[c].v_samp_factor;
  return info_.num_components == 1 || blocks <= max_blocks;
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

}  // namespace detail

MILLRACE_INLINE std::vector<std::byte> transcode_jpeg(std::span<const std::byte> data,
                                                      const jpeg_transcode_options& options) {
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
