// Transcodes any lossy 8-bit JPEG to a baseline JPEG with the same coefficients: the picture is the same bit for bit.
//
//   std::vector<std::byte> file = mr::transcode_jpeg(bytes);
//   auto with_restarts = mr::transcode_jpeg(bytes, {.restarts_per_row = 8});
//   auto by_size = mr::transcode_jpeg(bytes, {.restart_growth = 0.02});
//   auto with_shared_codes = mr::transcode_jpeg(bytes, {.codes = &codes});      // see jpeg_codes.hpp
//
// Progressive and arithmetic coding become Huffman coding in one scan, with tables made for the picture. Such files
// decode several times as fast and grow by some percent. An MCU of more than 10 blocks does not fit into one scan; such
// a picture gets one scan per component. A file that is already sequential in one scan, with the restarts asked for,
// comes back smaller or unchanged, unless shared codes are asked for. Codes that were made for one picture are the
// smallest, but a decoder makes its tables of them for each picture. keep_standard_codes avoids that for most files.
// Markers (EXIF, ICC, Adobe, comments) stay in their order. A rewritten file loses the bytes after the end of the image
// and the restart markers that are not asked for. Decoding can begin behind a restart marker, so that a crop's decoder
// passes over more of the picture. restarts_per_row divides a row of MCUs evenly: as many as possible, at least 1 per
// row. restart_growth takes the shortest interval of at least 64 pixels that makes the coded data grow by at most that
// share. By default there are none.
// The function reads the written file again and compares it with the original before it returns.
// Errors: data_error if the bytes are not an 8-bit lossy JPEG, are damaged, or do not fit into a baseline JPEG. An
// io_error means that the comparison failed or libjpeg could not be started. setup_error for impossible options.
// Threads: any; calls share nothing. A transcoder is used by one thread at a time. The bytes and codes must outlive it.
// Memory: at most twice limits.max_memory_bytes.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/jpeg/jpeg_codes.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/image/jpeg/libjpeg/jpeg_coefficients.hpp>
#include <millrace/image/jpeg/libjpeg/jpeg_output.hpp>
#include <millrace/image/jpeg/libjpeg/jpeg_symbols.hpp>
#include <millrace/image/plan/random_crop.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of transcode_jpeg(). At most one of the three for restarts is set.
struct jpeg_transcode_options {
  unsigned restarts_per_row = 0;       ///< most restart intervals in a row of MCUs; 0: no restart markers
  unsigned restart_interval = 0;       ///< MCUs between restart markers, at most 65,535; 0: no restart markers
  double restart_growth = 0;           ///< most growth by restart markers, at most 1; 0: no restart markers
  const jpeg_codes* codes = nullptr;   ///< the file's codes; null: made for the picture
  bool keep_standard_codes = false;    ///< without `codes`, a file with the codes of T.81 annex K keeps them
  detail::jpeg_limits limits{};        ///< limits of each of the two readings; accept_damaged has no effect
};

namespace detail {

class jpeg_coefficient_writer : private jpeg_output {
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
  void take_a_scan_for_each() noexcept;
  void take_codes(const jpeg_codes& codes) noexcept;

  std::array<jpeg_scan_info, 4> scans_{};
};

constexpr unsigned restart_interval_of(std::size_t mcus_per_row, unsigned restarts_per_row) noexcept {
  if (restarts_per_row == 0) return 0;
  std::size_t restarts = restarts_per_row < mcus_per_row ? restarts_per_row : mcus_per_row;
  while (mcus_per_row % restarts != 0) --restarts;
  return static_cast<unsigned>(mcus_per_row / restarts);
}

}  // namespace detail

/// MCUs of a picture that a decoder reads for a crop.
struct jpeg_walk {
  std::uint64_t all = 0;                ///< MCUs of the picture
  std::uint64_t without_restarts = 0;   ///< from the first to the crop's last
  std::uint64_t with_restarts = 0;      ///< in each row from a restart before the crop to its right edge
};

/// A JPEG that will be transcoded: what transcode_jpeg() does, in steps.
class jpeg_transcoder {
 public:
  /// Reads the coefficients and chooses the restart interval. Throws as transcode_jpeg() does.
  explicit jpeg_transcoder(std::span<const std::byte> data, const jpeg_transcode_options& options = {});

  /// Returns the MCUs between restart markers; 0: there will be none.
  unsigned restart_interval() const noexcept { return restart_interval_; }
  /// Returns about how many bytes the restart markers add; it is right to some percent.
  double restart_bytes();
  /// Draws a random resized crop and returns which MCUs it needs.
  jpeg_walk walk_of_random_crop(rng& random, const random_crop_options& options = {}) const;

  /// Adds the symbols that the file will have. Throws data_error if they do not fit into a baseline JPEG.
  void count_symbols(jpeg_symbol_counts& counts) { symbols().add_to(counts, restart_interval_); }

  /// Returns the baseline JPEG.
  std::vector<std::byte> write();

 private:
  const detail::jpeg_symbols& symbols();

  std::span<const std::byte> data_;
  jpeg_transcode_options options_;
  picture_size size_;
  detail::jpeg_coefficients before_;
  std::optional<detail::jpeg_symbols> symbols_;   // counted when needed
  unsigned restart_interval_ = 0;
};

/// Returns `data`, any lossy 8-bit JPEG, as a baseline JPEG with the same coefficients and markers.
/// Throws data_error if the file is damaged or does not fit into a baseline JPEG, io_error if the comparison fails, and
/// setup_error for impossible options.
std::vector<std::byte> transcode_jpeg(std::span<const std::byte> data, const jpeg_transcode_options& options = {});

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/jpeg/impl/jpeg_transcoder.inl>
#endif
