// Reads a baseline JPEG's header up to its only scan, or returns the reason why libjpeg must decode the file.
//
//   mr::detail::scan_header h;
//   const mr::jpeg_refusal why = mr::detail::read_scan_header(bytes, h);
//   if (why != mr::jpeg_refusal::none) return why;             // libjpeg decodes it
//   auto coded = bytes.subspan(h.data_offset_bytes);                   // the encoded h.width x h.height pixels
//
// Accepts 8-bit baseline or extended sequential Huffman coding with one interleaved scan of all components: gray, or
// YCbCr with 4:4:4, 4:2:2, 4:4:0 or 4:2:0 sampling. Refuses all other files, and files about which libjpeg would warn.
// A refusal affects only speed, because progressive_decoder.hpp or libjpeg then decodes the file.
// Errors: none; refusals are return values. Lifetime: the header points into the bytes.
// Format: ITU-T T.81 annex B. The color space is determined in the same way as in libjpeg.
#pragma once

#include <millrace/image/values/jpeg_refusal.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A Huffman code in the format of a DHT segment: the number of codes of each length from 1 to 16 bits, followed by the
/// symbols of all codes.
using code_bytes = std::span<const std::uint8_t>;

struct scan_component {
  std::uint8_t id = 0, quantiser_number = 0;
  int horizontal = 1, vertical = 1;          // blocks of this component in an MCU (minimum coded unit)
  const std::uint8_t* quantiser = nullptr;   // 64 numbers in zigzag order
  code_bytes dc{}, ac{};
};

struct scan_header {
  int width = 0, height = 0, components = 0;
  std::array<scan_component, 3> component{};
  unsigned restart_interval = 0;   // in MCUs (minimum coded units); 0 without restart markers
  int rows_together = 1;           // rows of MCUs that libjpeg decodes at once
  std::size_t data_offset_bytes = 0;
};

/// Reads all marker segments in one pass. Each member function reads the payload of one kind of segment. If
/// `progressive` is set, accepts only progressive frames. Otherwise, accepts only sequential frames.
class scan_header_reader {
 public:
  scan_header_reader(std::span<const std::uint8_t> file, scan_header& header, bool progressive = false)
      : file_(file), header_(header), progressive_(progressive) {}

  jpeg_refusal read() {
    using enum jpeg_refusal;
    if (file_.size() < 4 || file_[0] != 0xff || file_[1] != 0xd8) return not_a_jpeg;
    for (std::size_t at = 2;;) {
      if (file_.size() - at < 4 || file_[at] != 0xff) return not_a_jpeg;
      const unsigned marker = file_[at + 1];
      const std::size_t length = std::size_t{file_[at + 2]} << 8 | file_[at + 3];
      if (length < 2 || file_.size() - at - 2 < length) return not_a_jpeg;
      const auto payload = file_.subspan(at + 4, length - 2);
      at += 2 + length;
      if (marker == start_of_scan) {
        header_.data_offset_bytes = at;
        return read_scan(payload);
      }
      if (const auto why = read_segment(marker, payload); why != none) return why;
    }
  }

 protected:
  enum : unsigned {
    baseline_frame = 0xc0,
    extended_frame = 0xc1,
    progressive_frame = 0xc2,
    huffman_codes = 0xc4,
    last_frame = 0xcf,
    end_of_image = 0xd9,
    start_of_scan = 0xda,
    quantisers = 0xdb,
    restart_interval = 0xdd,
    first_application = 0xe0,
    adobe_application = 0xee,
    last_application = 0xef,
    comment = 0xfe
  };

  jpeg_refusal read_segment(unsigned marker, std::span<const std::uint8_t> payload) {
    using enum jpeg_refusal;
    switch (marker) {
      case baseline_frame:
      case extended_frame: return progressive_ ? process : read_frame(payload);
      case progressive_frame: return progressive_ ? read_frame(payload) : progressive;
      case huffman_codes: return read_codes(payload);
      case quantisers: return read_quantisers(payload);
      case restart_interval:
        if (payload.size() != 2) return unusual_header;
        header_.restart_interval = static_cast<unsigned>(payload[0] << 8 | payload[1]);
        return none;
      case first_application: return read_jfif(payload);
      case adobe_application:
        if (payload.size() >= 12 && std::memcmp(payload.data(), "Adobe", 5) == 0) adobe_transform_ = payload[11];
        return none;
      case comment: return none;
      default:
        if (marker > first_application && marker <= last_application) return none;
        return marker > extended_frame && marker <= last_frame ? process : unusual_header;
    }
  }

  jpeg_refusal read_jfif(std::span<const std::uint8_t> payload) {
    if (payload.size() < 14 || std::memcmp(payload.data(), "JFIF", 5) != 0) return jpeg_refusal::none;
    jfif_ = true;
    return payload[5] == 1 ? jpeg_refusal::none : jpeg_refusal::unusual_header;   // libjpeg warns about other versions
  }

  jpeg_refusal read_frame(std::span<const std::uint8_t> payload) {
    using enum jpeg_refusal;
    if (header_.components != 0 || payload.size() < 6) return unusual_header;
    if (payload[0] != 8) return precision;
    header_.height = payload[1] << 8 | payload[2];
    header_.width = payload[3] << 8 | payload[4];
    constexpr int most = 65'500;   // libjpeg's limit
    if (header_.width < 1 || header_.height < 1 || header_.width > most || header_.height > most) return unusual_header;
    const std::size_t count = payload[5];
    if (count != 1 && count != 3) return components;
    if (payload.size() != 6 + 3 * count) return unusual_header;
    header_.components = static_cast<int>(count);
    for (std::size_t c = 0; c < count; ++c) {
      scan_component& to = header_.component[c];
      to.id = payload[6 + 3 * c];
      to.horizontal = payload[7 + 3 * c] >> 4;
      to.vertical = payload[7 + 3 * c] & 15;
      to.quantiser_number = payload[8 + 3 * c];
      if (to.quantiser_number > 3) return unusual_header;
      if (to.horizontal < 1 || to.horizontal > 4 || to.vertical < 1 || to.vertical > 4) return unusual_header;
    }
    return check_sampling();
  }

  jpeg_refusal check_sampling() {
    auto& c = header_.component;
    if (header_.components == 1) {
      header_.rows_together = c[0].vertical;
      c[0].horizontal = c[0].vertical = 1;   // the MCU of a single component is one block, regardless of its factors
      return jpeg_refusal::none;
    }
    if (c[0].horizontal > 2 || c[0].vertical > 2) return jpeg_refusal::sampling;
    for (std::size_t i = 1; i < 3; ++i)
      if (c[i].horizontal != 1 || c[i].vertical != 1) return jpeg_refusal::sampling;
    const bool distinct = c[0].id != c[1].id && c[1].id != c[2].id && c[0].id != c[2].id;
    return distinct ? jpeg_refusal::none : jpeg_refusal::unusual_header;
  }

  jpeg_refusal read_codes(std::span<const std::uint8_t> payload) {
    constexpr std::size_t counts = 16;
    while (!payload.empty()) {
      if (payload.size() < 1 + counts) return jpeg_refusal::tables;
      const unsigned kind = payload[0] >> 4, number = payload[0] & 15;
      std::size_t symbols = 0;
      for (std::size_t i = 1; i <= counts; ++i) symbols += payload[i];
      if (kind > 1 || number > 3 || symbols > 256 || payload.size() < 1 + counts + symbols) return jpeg_refusal::tables;
      codes_[kind][number] = payload.subspan(1, counts + symbols);
      payload = payload.subspan(1 + counts + symbols);
    }
    return jpeg_refusal::none;
  }

  jpeg_refusal read_quantisers(std::span<const std::uint8_t> payload) {
    while (!payload.empty()) {
      if (payload[0] >> 4 != 0) return jpeg_refusal::precision;
      if ((payload[0] & 15) > 3 || payload.size() < 65) return jpeg_refusal::tables;
      quantisers_[payload[0] & 15] = payload.data() + 1;
      payload = payload.subspan(65);
    }
    return jpeg_refusal::none;
  }

  jpeg_refusal read_scan(std::span<const std::uint8_t> payload) {
    using enum jpeg_refusal;
    const auto count = static_cast<std::size_t>(header_.components);
    if (count == 0 || payload.empty()) return unusual_header;
    if (payload[0] < count) return several_scans;
    if (payload[0] != count || payload.size() != 4 + 2 * count) return unusual_header;
    for (std::size_t c = 0; c < count; ++c) {
      scan_component& to = header_.component[c];
      const unsigned dc = payload[2 + 2 * c] >> 4, ac = payload[2 + 2 * c] & 15;
      if (payload[1 + 2 * c] != to.id || dc > 3 || ac > 3) return unusual_header;
      to.dc = codes_[0][dc];
      to.ac = codes_[1][ac];
      to.quantiser = quantisers_[to.quantiser_number];
      if (to.dc.empty() || to.ac.empty() || to.quantiser == nullptr) return tables;
    }
    const auto spectrum = payload.subspan(1 + 2 * count);
    if (spectrum[0] != 0 || spectrum[1] != 63 || spectrum[2] != 0) return unusual_header;
    return count == 1 || is_ycbcr() ? none : colors;
  }

  bool is_ycbcr() const {
    if (jfif_) return true;
    if (adobe_transform_ >= 0) return adobe_transform_ == 1;
    const auto& c = header_.component;
    return c[0].id == 1 && c[1].id == 2 && c[2].id == 3;
  }

  std::span<const std::uint8_t> file_;
  scan_header& header_;
  std::array<std::array<code_bytes, 4>, 2> codes_{};
  std::array<const std::uint8_t*, 4> quantisers_{};
  bool progressive_ = false, jfif_ = false;
  int adobe_transform_ = -1;
};

inline jpeg_refusal read_scan_header(std::span<const std::byte> file, scan_header& header) {
  header = {};
  return scan_header_reader({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, header).read();
}

}}}   // namespace millrace::detail
