// Definitions for jpeg_header.hpp.
#pragma once

#include <millrace/image/jpeg/jpeg_header.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/file_kind.hpp>
#include <millrace/base/text.hpp>
#include <millrace/image/jpeg/baseline/scan_header.hpp>
#include <millrace/image/jpeg/libjpeg/jpeg_segments.hpp>
#include <millrace/image/jpeg/progressive/progressive_header.hpp>

#include <algorithm>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

namespace image_signatures {

/// "P6" and similar, followed by a blank or a comment.
MILLRACE_INLINE bool is_pnm_signature(std::string_view text) noexcept {
  constexpr std::string_view after = " \t\n\v\f\r#";
  return text.size() > 3 && text[0] == 'P' && text[1] >= '1' && text[1] <= '7' &&
         after.find(text[2]) != std::string_view::npos;
}

}   // namespace image_signatures

MILLRACE_INLINE std::string_view sniff_format(std::span<const std::byte> data) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
  const auto at = [text](std::size_t offset, std::string_view mark) {
    return text.size() >= offset + mark.size() && text.substr(offset, mark.size()) == mark;
  };
  using namespace std::string_view_literals;
  if (image_signatures::is_pnm_signature(text)) return "a PNM (PPM, PGM or PBM)";
  if (at(0, "\xff\xd8\xff"sv)) return "a JPEG";
  if (at(0, "\x89PNG"sv)) return "a PNG";
  if (at(0, "GIF8"sv)) return "a GIF";
  if (at(0, "RIFF"sv) && at(8, "WEBP"sv)) return "a WebP";
  if (at(0, "II*\0"sv) || at(0, "MM\0*"sv)) return "a TIFF";
  if (at(4, "ftyp"sv)) return "an ISO media file (HEIF, AVIF or MP4)";
  if (at(0, "\xff\x4f\xff\x51"sv) || at(4, "jP  "sv)) return "a JPEG 2000 file";
  if (at(0, "\xff\x0a"sv) || at(4, "JXL "sv)) return "a JPEG XL file";
  if (at(0, "8BPS\0\1"sv) || at(0, "8BPS\0\2"sv)) return "a PSD of Photoshop";
  if (at(0, "qoif"sv)) return "a QOI";
  if (at(0, "\x76\x2f\x31\x01"sv)) return "an OpenEXR file";
  if (at(0, "#?RADIANCE"sv) || at(0, "#?RGBE"sv)) return "a Radiance HDR file";
  if (at(0, "DDS \x7c"sv)) return "a DDS texture";
  if (at(0, "\0\0\1\0"sv) && text.size() >= 22 && text[4] != 0 && text[5] == 0) return "an ICO";
  if (text.size() > 44 && text.substr(text.size() - 18) == "TRUEVISION-XFILE.\0"sv) return "a TGA";
  if (at(0, "BM"sv)) return "a BMP";
  if (at(0, "<svg"sv)) return "an SVG";
  if (at(0, "\x1f\x8b"sv)) return "gzip-compressed data";
  if (at(0, "PK\x03\x04"sv)) return "a ZIP file";
  if (at(0, "%PDF"sv)) return "a PDF";
  const file_kind kind = kind_of_file(
      {.front = data.first(std::min<std::size_t>(data.size(), 1'024)), .file_bytes = data.size()});
  if (kind != file_kind::unknown && kind != file_kind::text && kind != file_kind::json && kind != file_kind::html &&
      kind != file_kind::xml)
    return name_of(kind);
  if (at(0, "<"sv)) return "an HTML or XML page";
  if (at(0, "{"sv)) return "a JSON text";
  if (kind == file_kind::text || kind == file_kind::json) return name_of(kind);
  return {};
}

MILLRACE_RARE picture_format_hint hint_on_format(std::span<const std::byte> data) {
  picture_format_hint hint{.name = sniff_format(data)};
  const auto is = [&](std::string_view name) { return hint.name == name; };
  if (hint.name.empty()) hint.advice = "Select the field that contains the image";
  else if (is("a JPEG")) hint.advice = "Use mr::jpeg(), or mr::any_picture() for any of JPEG, PNG and PNM";
  else if (is("a PNG")) hint.advice = "Use mr::png(), or mr::any_picture() for any of JPEG, PNG and PNM";
  else if (is("a PNM (PPM, PGM or PBM)"))
    hint.advice = "Use mr::pnm() for P5 and P6, or mr::any_picture() for any of JPEG, PNG and PNM; convert P1 to P4";
  else if (is("a WebP"))
    hint.advice = "Include millrace/adapt/webp.hpp and pass {.also = &mr::webp_pictures} to mr::any_picture()";
  else if (is("a NumPy .npy file")) hint.advice = "Use mr::array for arrays, or mr::labels() for label maps";
  else if (is("a Git LFS pointer"))
    hint.advice = "Fetch the file that the pointer refers to (git lfs pull), and write the shard again";
  else if (is("an HTML or XML page") || is("a JSON text") || is("a text"))
    hint.advice = "A server may have returned an error page: fetch the image again, or leave the sample out";
  else if (is("gzip-compressed data")) hint.advice = "Decompress it, and write the shard again";
  else hint.advice = "Convert it to JPEG, PNG or WebP, or leave the sample out";
  return hint;
}

MILLRACE_RARE std::string other_format_message(std::span<const std::byte> data, const std::string& expected) {
  if (data.empty()) return expected + " was expected, but there are 0 bytes";
  if (const auto format = sniff_format(data); !format.empty())
    return expected + " was expected, but the bytes look like " + std::string(format);
  return expected + " was expected, but these " + std::to_string(data.size()) + " bytes begin with" + first_bytes(data);
}

MILLRACE_RARE void throw_bad_jpeg(std::string message, std::string hint) {
  throw data_error(std::move(message), std::move(hint), {.stage = "jpeg"});
}

MILLRACE_RARE std::string first_bytes(std::span<const std::byte> data) {
  std::string start;
  for (const std::byte b : data.first(data.size() < 8 ? data.size() : 8)) {
    start += ' ';
    start += hex(std::to_integer<unsigned>(b), 2);
  }
  return start;
}

MILLRACE_RARE void throw_not_a_jpeg(std::span<const std::byte> data) {
  if (data.empty() || !sniff_format(data).empty())
    throw_bad_jpeg(other_format_message(data, "a JPEG"), hint_on_format(data).advice);
  throw_bad_jpeg(
      "a JPEG begins with ff d8 ff, but these " + std::to_string(data.size()) + " bytes begin with" + first_bytes(data),
      "Select the field that contains the JPEG");
}

MILLRACE_INLINE void read_frame_header(const byte_reader& read, std::size_t at, std::size_t size, std::uint32_t marker,
                                       jpeg_header& header) {
  constexpr auto reencode = "Convert the file to an 8-bit baseline or progressive JPEG";
  const bool lossy = marker <= 0xc2 || marker == 0xc9 || marker == 0xca;
  if (!lossy) throw_bad_jpeg("the JPEG is lossless or hierarchical, which is not supported", reencode);
  if (size < 6)
    throw_bad_jpeg("the JPEG's frame header is too short: got " + std::to_string(size) + " bytes, expected at least 6",
                   reencode);
  if (read.u8(at) != 8)
    throw_bad_jpeg(
        "the JPEG has an unsupported sample precision: got " + std::to_string(read.u8(at)) + " bits, expected 8",
        reencode);
  header.height = read.u16(at + 1);
  header.width = read.u16(at + 3);
  header.components = static_cast<int>(read.u8(at + 5));
  header.progressive = marker == 0xc2 || marker == 0xca;
  header.arithmetic = marker >= 0xc9;
  if (header.width == 0 || header.height == 0)
    throw_bad_jpeg("the JPEG's header declares an empty image: got " + std::to_string(header.width) + " x " +
                       std::to_string(header.height) + " pixels",
                   reencode);
  if (header.components != 1 && header.components != 3 && header.components != 4)
    throw_bad_jpeg("the JPEG has an unsupported number of components: got " + std::to_string(header.components) +
                       ", expected 1, 3 or 4",
                   reencode);
}

}   // namespace detail

MILLRACE_INLINE jpeg_header read_jpeg_header(std::span<const std::byte> data, bool accept_damaged) {
  const detail::byte_reader read{data.data(), false};
  if (data.size() < 3 || read.u16(0) != 0xffd8) detail::throw_not_a_jpeg(data);
  constexpr auto damaged = "The file is damaged: fetch it again, or leave the sample out";
  if (read.u8(2) != 0xff && !accept_damaged)
    detail::throw_bad_jpeg(
        "the JPEG's first marker is damaged: got" + detail::first_bytes(data) + ", expected ff d8 ff",
        std::string(damaged) + ", or set jpeg_options::accept_damaged to decode the intact part");
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
    if (marker == 0xf7)
      detail::throw_bad_jpeg("the JPEG is a JPEG-LS, which is not supported",
                             "Convert the file to an 8-bit baseline or progressive JPEG");
    const bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (frame) {
      detail::read_frame_header(read, payload, size, marker, header);
      return header;
    }
    if (marker == 0xe1)
      if (const int orientation = detail::exif_orientation(data.subspan(payload, size)); orientation != 0)
        header.orientation = orientation;
    at += length;
  }
  detail::throw_bad_jpeg("the JPEG ends after " + std::to_string(data.size()) + " bytes, inside its headers", damaged);
}

MILLRACE_INLINE jpeg_refusal refusal_of_header(std::span<const std::byte> file) {
  detail::scan_header header;
  const jpeg_refusal why = detail::read_scan_header(file, header);
  return why == jpeg_refusal::progressive ? detail::read_progressive_headers(file) : why;
}

MILLRACE_RARE std::vector<std::byte> jpeg_metadata(std::span<const std::byte> file, jpeg_metadata_options options) {
  std::vector<std::byte> metadata;
  detail::for_each_jpeg_segment(file, [&](unsigned marker, std::span<const std::byte> segment) {
    constexpr unsigned jfif = 0xe0, profile = 0xe2, adobe = 0xee;
    const bool excluded = marker == jfif || marker == adobe || (marker == profile && !options.color_profile);
    if (detail::describes_image(marker) && !excluded) metadata.insert(metadata.end(), segment.begin(), segment.end());
  });
  return metadata;
}

}}   // namespace millrace
