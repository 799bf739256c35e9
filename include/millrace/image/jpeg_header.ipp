// Defines what jpeg_header.hpp declares.
#pragma once

#include <millrace/image/jpeg_header.hpp>

#include <millrace/image/baseline/scan_header.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/hex.hpp>
#include <millrace/image/libjpeg/jpeg_segments.hpp>
#include <millrace/image/progressive/progressive_header.hpp>

#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::string_view sniff_format(std::span<const std::byte> data) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
  const auto at = [text](std::size_t offset, std::string_view mark) {
    return text.size() >= offset + mark.size() && text.substr(offset, mark.size()) == mark;
  };
  using namespace std::string_view_literals;
  if (at(0, "\x89PNG"sv)) return "a PNG";
  if (at(0, "GIF8"sv)) return "a GIF";
  if (at(0, "RIFF"sv) && at(8, "WEBP"sv)) return "a WebP";
  if (at(0, "II*\0"sv) || at(0, "MM\0*"sv)) return "a TIFF";
  if (at(4, "ftyp"sv)) return "an ISO media file (HEIF, AVIF or MP4)";
  if (at(0, "\xff\x4f\xff\x51"sv) || at(4, "jP  "sv)) return "a JPEG 2000 file";
  if (at(0, "\xff\x0a"sv) || at(4, "JXL "sv)) return "a JPEG XL file";
  if (at(0, "\x1f\x8b"sv)) return "gzip-compressed data";
  if (at(0, "PK\x03\x04"sv)) return "a ZIP file";
  if (at(0, "%PDF"sv)) return "a PDF";
  if (at(0, "<"sv)) return "an HTML or XML page";
  if (at(0, "{"sv)) return "a JSON text";
  if (at(0, "BM"sv)) return "a BMP";
  return {};
}

MILLRACE_INLINE void throw_bad_jpeg(std::string message, std::string hint) {
  throw data_error(std::move(message), std::move(hint), {.stage = "jpeg"});
}

MILLRACE_INLINE std::string first_bytes(std::span<const std::byte> data) {
  std::string start;
  for (const std::byte b : data.first(data.size() < 8 ? data.size() : 8)) {
    start += ' ';
    start += hex(std::to_integer<unsigned>(b), 2);
  }
  return start;
}

MILLRACE_INLINE void throw_not_a_jpeg(std::span<const std::byte> data) {
  constexpr auto hint = "Name the field that holds the JPEG; png(), pnm() and any_picture() read other formats";
  if (data.empty()) throw_bad_jpeg("a JPEG was expected, but there are 0 bytes", hint);
  if (const auto format = sniff_format(data); !format.empty())
    throw_bad_jpeg("a JPEG was expected, but the bytes look like " + std::string(format), hint);
  throw_bad_jpeg("a JPEG begins with ff d8 ff, but these " + std::to_string(data.size()) + " bytes with" +
                     first_bytes(data), hint);
}

MILLRACE_INLINE void read_frame_header(const byte_reader& read, std::size_t at, std::size_t size, std::uint32_t marker,
    jpeg_header& header) {
  constexpr auto reencode = "Convert the file to an 8-bit baseline or progressive JPEG";
  const bool lossy = marker <= 0xc2 || marker == 0xc9 || marker == 0xca;
  if (!lossy) throw_bad_jpeg("the JPEG is lossless or hierarchical, which is not supported", reencode);
  if (size < 6)
    throw_bad_jpeg("the JPEG's frame header is " + std::to_string(size) + " bytes long, not 6 or more", reencode);
  if (read.u8(at) != 8)
    throw_bad_jpeg("the JPEG has " + std::to_string(read.u8(at)) + " bits per sample; 8 are supported", reencode);
  header.height = read.u16(at + 1);
  header.width = read.u16(at + 3);
  header.components = static_cast<int>(read.u8(at + 5));
  header.progressive = marker == 0xc2 || marker == 0xca;
  header.arithmetic = marker >= 0xc9;
  if (header.width == 0 || header.height == 0)
    throw_bad_jpeg("the JPEG's header says " + std::to_string(header.width) + " x " + std::to_string(header.height) +
                       " pixels", reencode);
  if (header.components != 1 && header.components != 3 && header.components != 4)
    throw_bad_jpeg("the JPEG has " + std::to_string(header.components) + " components; 1, 3 and 4 are supported",
                   reencode);
}

}  // namespace detail

MILLRACE_INLINE jpeg_header read_jpeg_header(std::span<const std::byte> data, bool accept_damaged) {
  const detail::byte_reader read{data.data(), false};
  if (data.size() < 3 || read.u16(0) != 0xffd8) detail::throw_not_a_jpeg(data);
  constexpr auto damaged = "The file is damaged: fetch it again, or leave the sample out";
  if (read.u8(2) != 0xff && !accept_damaged)
    detail::throw_bad_jpeg("the JPEG's first marker is damaged: got" + detail::first_bytes(data) +
                               ", expected ff d8 ff",
                           std::string(damaged) + "; jpeg_options::accept_damaged takes what can be decoded of it");
  jpeg_header header;
  std::size_t at = 2;
  for (;;) {
    // libjpeg also skips bytes that are not markers, and any number of fill bytes.
    while (at < data.size() && read.u8(at) != 0xff) ++at;
    while (at < data.size() && read.u8(at) == 0xff) ++at;
    if (at >= data.size()) break;
    const std::uint32_t marker = read.u8(at++);
    const bool alone = marker == 0 || marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8);
    if (alone) continue;
    if (marker == 0xd9 || marker == 0xda)
      detail::throw_bad_jpeg("the JPEG has no frame header before its first scan", damaged);
    if (data.size() - at < 2) break;
    const std::size_t length = read.u16(at);
    if (length < 2 || length > data.size() - at) break;
    const std::size_t payload = at + 2, size = length - 2;
    const bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (frame) {
      detail::read_frame_header(read, payload, size, marker, header);
      return header;
    }
    if (marker == 0xe1)
      if (const int found = detail::exif_orientation(data.subspan(payload, size)); found != 0)
        header.orientation = found;
    at += length;
  }
  detail::throw_bad_jpeg("the JPEG ends after " + std::to_string(data.size()) + " bytes, inside its headers", damaged);
}

MILLRACE_INLINE jpeg_refusal refusal_of_header(std::span<const std::byte> file) {
  detail::scan_header header;
  const jpeg_refusal why = detail::read_scan_header(file, header);
  return why == jpeg_refusal::progressive ? detail::read_progressive_headers(file) : why;
}

MILLRACE_INLINE std::vector<std::byte> jpeg_metadata(std::span<const std::byte> file, jpeg_metadata_options options) {
  std::vector<std::byte> kept;
  detail::for_each_jpeg_segment(file, [&](unsigned marker, std::span<const std::byte> segment) {
    constexpr unsigned jfif = 0xe0, profile = 0xe2, adobe = 0xee;
    const bool left_out = marker == jfif || marker == adobe || (marker == profile && !options.color_profile);
    if (detail::describes_the_picture(marker) && !left_out) kept.insert(kept.end(), segment.begin(), segment.end());
  });
  return kept;
}

}}  // namespace millrace
