// Reads the markers of a progressive JPEG. Each call of next() reads up to the next scan. If the file is not supported,
// next() returns the reason why libjpeg must decode it.
//
//   mr::detail::progressive_reader reader(file, header);                     // bytes, and a scan_header to fill
//   mr::detail::progressive_scan scan;
//   for (auto step = reader.next(2, scan); step.result == reader.at_scan; step = reader.next(data_end, scan))
//     decode(scan);                                                          // decodes from scan.data_offset_bytes on
//   if (!reader.refined()) return mr::jpeg_refusal::unrefined;       // libjpeg smooths such images
//
// Accepts 8-bit progressive Huffman coding, with the same color components and sampling as scan_header.hpp. As the
// standard requires, the first scan of a coefficient must contain its topmost bits, and each later scan the next lower
// bit. Refuses files about which libjpeg would warn, and files that contain a coefficient's first bits twice.
// Errors: none; refusals are return values. Lifetime: header and scan point into the bytes. Threads: one thread at a
// time.
// Format: ITU-T T.81 annex B and G.1.1.
#pragma once

#include <millrace/image/jpeg/baseline/scan_header.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The header of a scan: the components, coefficients and bits that the scan contains.
struct progressive_scan {
  std::size_t components = 0;
  std::array<std::size_t, 3> component{};   // indices in the frame, ascending
  unsigned first = 0, last = 0;             // coefficients, in zigzag order; 0 and 0 for a DC scan
  unsigned low = 0;                         // position of the lowest bit that this scan contains
  bool refines = false;                     // whether the scan contains only the bit `low`
  std::array<code_bytes, 3> dc{};           // codes of the scan's components; empty if not used
  code_bytes ac{};
  unsigned restart_interval = 0;   // in MCUs (coding units); 0 without restart markers
  std::size_t data_offset_bytes = 0;
};

class progressive_reader : private scan_header_reader {
 public:
  enum outcome : std::uint8_t { at_scan, at_end, refused };
  struct step {
    outcome result;
    jpeg_refusal why = jpeg_refusal::none;
  };

  progressive_reader(std::span<const std::uint8_t> file, scan_header& header) : scan_header_reader(file, header, true) {
    for (auto& of_component : lowest_bit_) of_component.fill(unsent);
  }

  /// Reads the markers from offset `at` to the next scan header or the end of the image. In the first call, `at` must
  /// be 2, the offset after the file's start marker.
  step next(std::size_t at, progressive_scan& scan) {
    using enum jpeg_refusal;
    if (at == 2 && (file_.size() < 4 || file_[0] != 0xff || file_[1] != 0xd8)) return {refused, not_a_jpeg};
    for (;;) {
      if (file_.size() - at < 2 || file_[at] != 0xff) return {refused, broken()};
      const unsigned marker = file_[at + 1];
      if (marker == end_of_image) return scans_ > 0 ? step{at_end} : step{refused, not_a_jpeg};
      if (file_.size() - at < 4) return {refused, broken()};
      const std::size_t length = std::size_t{file_[at + 2]} << 8 | file_[at + 3];
      if (length < 2 || file_.size() - at - 2 < length) return {refused, broken()};
      const auto payload = file_.subspan(at + 4, length - 2);
      at += 2 + length;
      if (marker != start_of_scan) {
        if (const auto why = read_segment(marker, payload); why != none) return {refused, why};
        continue;
      }
      scan = {};
      scan.data_offset_bytes = at;
      scan.restart_interval = header_.restart_interval;
      if (const auto why = read_progressive_scan(payload, scan); why != none) return {refused, why};
      ++scans_;
      return {at_scan};
    }
  }

  /// Returns the offset of the first marker after the data of a scan. The data begins at `at`. If no marker follows,
  /// returns the size of the file.
  static std::size_t end_of_data(std::span<const std::uint8_t> file, std::size_t at) noexcept {
    for (; at + 1 < file.size(); ++at) {
      const bool restarts = file[at + 1] >= 0xd0 && file[at + 1] <= 0xd7;
      if (file[at] == 0xff && file[at + 1] != 0 && !restarts) return at;
    }
    return file.size();
  }

  int scans() const noexcept { return scans_; }

  /// Returns whether the scans contained all bits of all coefficients.
  bool refined() const noexcept {
    for (std::size_t c = 0; c < static_cast<std::size_t>(header_.components); ++c)
      if (std::any_of(lowest_bit_[c].begin(), lowest_bit_[c].end(), [](int low) { return low != 0; })) return false;
    return true;
  }

 private:
  static constexpr std::int8_t unsent = -1;

  jpeg_refusal broken() const noexcept { return scans_ > 0 ? jpeg_refusal::damaged : jpeg_refusal::not_a_jpeg; }

  jpeg_refusal read_progressive_scan(std::span<const std::uint8_t> payload, progressive_scan& scan) {
    using enum jpeg_refusal;
    const auto all = static_cast<std::size_t>(header_.components);
    if (all == 0 || payload.empty()) return unusual_header;
    scan.components = payload[0];
    if (scan.components < 1 || scan.components > all || payload.size() != 4 + 2 * scan.components)
      return unusual_header;
    header_.rows_together = 1;   // enough, because libjpeg reads all scans before it returns a row
    if (scans_ == 0 && all == 3 && !is_ycbcr()) return colors;
    const auto spectrum = payload.subspan(1 + 2 * scan.components);
    const unsigned high = spectrum[2] >> 4;
    scan.first = spectrum[0];
    scan.last = spectrum[1];
    scan.low = spectrum[2] & 15;
    scan.refines = high != 0;
    constexpr unsigned largest_low = 13;
    if (scan.last > 63 || scan.low > largest_low || (scan.refines && scan.low + 1 != high)) return unusual_header;
    if (scan.first == 0 ? scan.last != 0 : scan.last < scan.first || scan.components != 1) return unusual_header;
    std::size_t least = 0;
    for (std::size_t i = 0; i < scan.components; ++i) {
      std::size_t c = least;
      while (c < all && header_.component[c].id != payload[1 + 2 * i]) ++c;
      if (c == all) return unusual_header;
      least = c + 1;
      scan.component[i] = c;
      if (const auto why = read_tables(payload[2 + 2 * i], i, scan); why != none) return why;
      if (!advance(lowest_bit_[c], high, scan)) return unusual_header;
    }
    return none;
  }

  jpeg_refusal read_tables(unsigned numbers, std::size_t i, progressive_scan& scan) {
    const unsigned dc = numbers >> 4, ac = numbers & 15;
    if (dc > 3 || ac > 3) return jpeg_refusal::unusual_header;
    scan_component& of = header_.component[scan.component[i]];
    // Like libjpeg, use the quantizer that is defined when the component's first scan begins.
    if (of.quantiser == nullptr) of.quantiser = quantisers_[of.quantiser_number];
    if (of.quantiser == nullptr) return jpeg_refusal::tables;
    if (scan.first > 0) scan.ac = codes_[1][ac];
    else if (!scan.refines) scan.dc[i] = codes_[0][dc];
    const bool needs_code = scan.first > 0 || !scan.refines;
    return needs_code && scan.ac.empty() && scan.dc[i].empty() ? jpeg_refusal::tables : jpeg_refusal::none;
  }

  /// Updates `lowest` for a scan. Returns false if the bits of the scan do not directly follow the bits of earlier
  /// scans.
  static bool advance(std::array<std::int8_t, 64>& lowest, unsigned high, const progressive_scan& scan) {
    if (scan.first > 0 && lowest[0] == unsent) return false;
    for (unsigned k = scan.first; k <= scan.last; ++k) {
      if (lowest[k] != (scan.refines ? static_cast<std::int8_t>(high) : unsent)) return false;
      lowest[k] = static_cast<std::int8_t>(scan.low);
    }
    return true;
  }

  std::array<std::array<std::int8_t, 64>, 3> lowest_bit_;   // for each coefficient, the lowest bit read so far
  int scans_ = 0;
};

/// Reads the markers of all scans of a progressive file. Returns the reason why libjpeg must decode it, or `none`.
inline jpeg_refusal read_progressive_headers(std::span<const std::byte> bytes) {
  const std::span file(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  scan_header header;
  progressive_reader reader(file, header);
  progressive_scan scan;
  for (std::size_t at = 2;; at = progressive_reader::end_of_data(file, scan.data_offset_bytes)) {
    const auto [outcome, why] = reader.next(at, scan);
    if (outcome == progressive_reader::refused) return why;
    if (outcome == progressive_reader::at_end) return reader.refined() ? jpeg_refusal::none : jpeg_refusal::unrefined;
  }
}

}}}   // namespace millrace::detail
