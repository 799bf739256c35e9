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

#include <millrace/image/jpeg_header.hpp>
#include <millrace/image/libjpeg/jpeg_coefficients.hpp>
#include <millrace/image/libjpeg/jpeg_output.hpp>

#include <array>
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
  std::vector<std::byte> write(jpeg_coefficients& from, unsigned restart_interval);

 private:
  bool compress(jpeg_coefficients& from, unsigned restart_interval) noexcept;
  bool fits_one_scan() const noexcept;
  void take_a_scan_for_each() noexcept;

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
std::vector<std::byte> transcode_jpeg(std::span<const std::byte> data, const jpeg_transcode_options& options = {});

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/jpeg_transcoder.ipp>
#endif
