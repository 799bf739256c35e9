// Definitions for png_rows.hpp.
#pragma once

#include <millrace/image/png/png_rows.hpp>

#include <millrace/base/crc32c.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/image/png/adler.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline constexpr std::size_t png_length_bytes = 4, png_name_bytes = 4, png_crc_bytes = 4;
inline constexpr std::string_view png_signature{"\x89PNG\r\n\x1a\n", 8};
inline constexpr std::size_t png_max_bytes = 0x7fff'ffff;   // maximum bytes of a chunk, and pixels of a side

/// Reads a big-endian number of four bytes.
MILLRACE_INLINE std::uint32_t png_number(std::span<const std::byte> bytes) noexcept {
  std::uint32_t value = 0;
  for (const std::byte b : bytes.first(4)) value = value << 8 | std::to_integer<std::uint32_t>(b);
  return value;
}

MILLRACE_INLINE std::uint32_t png_chunk::computed_crc() const noexcept {
  return crc32(data, crc32(std::as_bytes(std::span(name))));
}

MILLRACE_INLINE std::optional<png_chunk> png_chunk_at(std::span<const std::byte> file, std::size_t at) noexcept {
  if (at > file.size() || file.size() - at < png_length_bytes + png_name_bytes) return std::nullopt;
  const auto name = file.subspan(at + png_length_bytes, png_name_bytes);
  png_chunk chunk;
  chunk.name = {reinterpret_cast<const char*>(name.data()), name.size()};
  chunk.at = at;
  const std::size_t length = png_number(file.subspan(at));
  const auto rest = file.subspan(at + png_length_bytes + png_name_bytes);
  chunk.complete = length <= png_max_bytes && rest.size() >= length + png_crc_bytes;
  chunk.data = rest.first(std::min(length, rest.size()));
  if (!chunk.complete) return chunk;
  chunk.stored_crc = png_number(rest.subspan(length));
  chunk.end = at + png_length_bytes + png_name_bytes + length + png_crc_bytes;
  return chunk;
}

MILLRACE_INLINE void throw_bad_png(std::string message, std::string hint) {
  if (hint.empty()) hint = "The file is damaged: fetch it again, or leave the sample out";
  throw data_error(std::move(message), std::move(hint), {.stage = "png"});
}

MILLRACE_INLINE std::string png_crc_text(const png_chunk& chunk) {
  return "the PNG's chunk " + std::string(chunk.name) + " at byte " + std::to_string(chunk.at) +
         " has a wrong CRC: got " + hex(chunk.computed_crc(), 8) + ", expected " + hex(chunk.stored_crc, 8);
}

MILLRACE_INLINE void check_png_chunk(const png_chunk& chunk, bool check_sums) {
  const bool letters = std::all_of(chunk.name.begin(), chunk.name.end(),
                                   [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
  if (!letters)
    throw_bad_png("the PNG has a chunk at byte " + std::to_string(chunk.at) + " with an invalid name: got '" +
                  printable(chunk.name) + "'");
  if (!chunk.complete)
    throw_bad_png("the PNG ends inside its chunk " + std::string(chunk.name) + " at byte " + std::to_string(chunk.at));
  if (check_sums && chunk.critical() && chunk.computed_crc() != chunk.stored_crc) throw_bad_png(png_crc_text(chunk));
}

[[noreturn]] MILLRACE_INLINE void throw_unknown_png_chunk(const png_chunk& chunk) {
  throw_bad_png("the PNG has the critical chunk " + std::string(chunk.name) + " at byte " + std::to_string(chunk.at) +
                    ", which this decoder does not support",
                "Convert the file to a standard PNG");
}

/// Reads IHDR.
MILLRACE_INLINE png_header read_png_ihdr(std::span<const std::byte> data, const png_limits& limits) {
  constexpr std::size_t ihdr_bytes = 13;
  if (data.size() != ihdr_bytes)
    throw_bad_png("the PNG's IHDR has the wrong size: got " + std::to_string(data.size()) + " bytes, expected 13");
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(data[i]); };
  png_header header;
  header.width = png_number(data);
  header.height = png_number(data.subspan(4));
  header.depth = byte(8);
  header.color = static_cast<png_color>(byte(9));
  const std::string size = std::to_string(header.width) + " x " + std::to_string(header.height) + " pixels";
  if (header.width < 1 || header.height < 1 || header.width > png_max_bytes || header.height > png_max_bytes)
    throw_bad_png("the PNG's IHDR declares invalid sides: got " + size + ", expected 1 to " +
                  std::to_string(png_max_bytes) + " per side");
  const unsigned depths = byte(9) == 0                                   ? 0x1'0116U
                          : byte(9) == 3                                 ? 0x116U
                          : byte(9) == 2 || byte(9) == 4 || byte(9) == 6 ? 0x1'0100U
                                                                         : 0U;   // a bit for each
  if (header.depth > 16 || (depths >> header.depth & 1) == 0)
    throw_bad_png("the PNG's IHDR declares an invalid pixel format: got color type " + std::to_string(byte(9)) +
                  " with " + std::to_string(byte(8)) + " bits per sample, expected a combination that PNG defines");
  if (byte(10) != 0 || byte(11) != 0 || byte(12) > 1)
    throw_bad_png("the PNG's IHDR declares an unknown method: got compression " + std::to_string(byte(10)) +
                  ", filter " + std::to_string(byte(11)) + ", interlace " + std::to_string(byte(12)) +
                  ", expected compression 0, filter 0, and interlace 0 or 1");
  header.interlaced = byte(12) == 1;
  // The second limit keeps the bytes of a row and of all rows below 2^48.
  constexpr std::uint64_t pixel_limit = std::uint64_t{1} << 44;
  const std::uint64_t pixels = std::uint64_t{header.width} * header.height;
  if (pixels > std::min(limits.max_pixels, pixel_limit))
    throw_bad_png("the PNG's header declares too many pixels: got " + size +
                      ", expected at most max_pixels = " + std::to_string(limits.max_pixels),
                  "Raise max_pixels if you expect images of this size");
  return header;
}

MILLRACE_INLINE void read_png_palette(const png_chunk& chunk, png_header& header) {
  const bool colored = header.color == png_color::rgb || header.color == png_color::rgba;
  if (header.color != png_color::palette && !colored) return;   // not needed for gray, but allowed
  if (chunk.data.empty() || chunk.data.size() % 3 != 0 || chunk.data.size() > std::size_t{3} * 256) {
    if (colored) return;
    throw_bad_png("the PNG's palette has the wrong size: got " + std::to_string(chunk.data.size()) +
                  " bytes, expected 3 per color and at most 768");
  }
  header.palette = chunk.data;
}

MILLRACE_INLINE png_header read_png_header(std::span<const std::byte> file, const png_limits& limits) {
  constexpr auto other = "Select the field that contains the PNG";
  if (file.size() < png_signature.size() || std::memcmp(file.data(), png_signature.data(), png_signature.size()) != 0) {
    std::string start;
    for (const std::byte b : file.first(std::min(file.size(), png_signature.size())))
      (start += ' ') += hex(std::to_integer<unsigned>(b), 2);
    throw_bad_png("a PNG begins with 89 50 4e 47 0d 0a 1a 0a, but these " + std::to_string(file.size()) + " bytes" +
                      (start.empty() ? "" : " begin with" + start),
                  other);
  }
  png_header header;
  bool palette = false;
  for (std::size_t at = png_signature.size();;) {
    const auto chunk = png_chunk_at(file, at);
    if (!chunk) throw_bad_png("the PNG ends after " + std::to_string(file.size()) + " bytes, before its image data");
    const bool first = at == png_signature.size();
    // Truncated image data may still have rows.
    if (!first && chunk->name == "IDAT") {
      header.data_at = at;
      return header;
    }
    check_png_chunk(*chunk, limits.check_sums);
    if (first != (chunk->name == "IHDR"))
      throw_bad_png(first ? "the PNG's first chunk is " + std::string(chunk->name) + ", expected IHDR"
                          : "the PNG has two IHDR chunks, expected one");
    if (first) header = read_png_ihdr(chunk->data, limits);
    else if (chunk->name == "PLTE" && std::exchange(palette, true)) throw_bad_png("the PNG has two palettes");
    else if (chunk->name == "PLTE") read_png_palette(*chunk, header);
    else if (chunk->name == "IEND") throw_bad_png("the PNG has no image data before its IEND");
    else if (chunk->critical()) throw_unknown_png_chunk(*chunk);
    const bool transparency = chunk->name == "tRNS" && header.transparency.empty();
    if (transparency || (chunk->name == "eXIf" && header.exif.empty())) {
      const bool intact = !limits.check_sums || chunk->computed_crc() == chunk->stored_crc;
      if (transparency) header.transparency = chunk->data;
      if (transparency) header.transparency_intact = intact;
      else if (intact) header.exif = chunk->data;
    }
    at = chunk->end;
  }
}

MILLRACE_INLINE std::span<const std::uint8_t> png_image_data::next() noexcept {
  while (ending_ == end::none) {
    const auto chunk = png_chunk_at(file_, at_);
    if (!chunk) {
      ending_ = end::cut_short;
      break;
    }
    if (chunk->name != "IDAT") {
      ending_ = end::other_chunk;
      break;
    }
    if (chunk->complete && check_sums_ && chunk->computed_crc() != chunk->stored_crc) {
      ending_ = end::bad_crc;
      bad_ = *chunk;
      break;
    }
    if (!chunk->complete) ending_ = end::cut_short;
    at_ = chunk->end;
    if (!chunk->data.empty()) return {reinterpret_cast<const std::uint8_t*>(chunk->data.data()), chunk->data.size()};
  }
  return {};
}

MILLRACE_INLINE void png_image_data::check_remaining_chunks() {
  while (!next().empty()) {}
  if (ending_ == end::bad_crc) throw_bad_png(png_crc_text(bad_));
  while (ending_ != end::cut_short) {
    const auto chunk = png_chunk_at(file_, at_);
    if (!chunk) break;
    check_png_chunk(*chunk, check_sums_);
    if (chunk->name == "IEND") return;
    // Additional image data and palettes are misplaced, but other readers accept them too.
    if (chunk->critical() && chunk->name != "IDAT" && chunk->name != "PLTE") throw_unknown_png_chunk(*chunk);
    at_ = chunk->end;
  }
  throw_bad_png("the PNG ends after " + std::to_string(file_.size()) +
                " bytes, between its last row and its IEND chunk");
}

MILLRACE_INLINE void png_rows::begin(std::span<const std::byte> file, const png_header& header, const reading& how) {
  pieces_ = png_image_data(file, header.data_at, how.check_sums);
  zip_.begin(pieces_);
  undo_ = unfilter(header.filter_bytes());
  how_ = how;
  file_bytes_ = file.size();
  stored_bytes_ = file.size() - header.data_at;
  status_ = inflate_status::more;
  adler_ = 1;
  out_ = read_ = nullptr;
  window_bytes_ = 0;
}

MILLRACE_INLINE void png_rows::expect(std::uint64_t bytes) const {
  if (bytes / max_inflation <= stored_bytes_) return;
  throw_bad_png("the PNG is too short for its declared size: got " + std::to_string(stored_bytes_) +
                " bytes of compressed data, expected enough for " + std::to_string(bytes) +
                " bytes of decompressed rows");
}

MILLRACE_INLINE void png_rows::begin_rows(const part& rows) {
  const std::size_t stride = rows.row_bytes + 1;
  expect(stride);
  part_ = rows;
  row_ = ready_next_ = ready_count_ = 0;
  // Long rows are unfiltered one by one, which needs less memory.
  max_unfiltered_ = rows.row_bytes > long_row_bytes ? 2 : unfilter::max_rows + 1;
  unfiltered_stride_ = rows.row_bytes + slack_bytes;
  unfiltered_next_ = 0;
  std::uint8_t* const memory = unfiltered_.at_least((max_unfiltered_ + 1) * unfiltered_stride_);
  above_ = memory + max_unfiltered_ * unfiltered_stride_;
  above_in_window_ = false;
  std::memset(memory + max_unfiltered_ * unfiltered_stride_, 0, unfiltered_stride_);
  // The window must contain the source of matches, or the row above and a part of the next one, plus new bytes. The
  // more new bytes it has, the less often the required bytes are moved to its front.
  const std::size_t window = inflater::window_bytes + 2 * stride + 8 * inflated_at_once;
  if (window_bytes_ >= window) return;
  // Later passes have longer rows. The contents are copied to the larger window.
  const std::size_t used = static_cast<std::size_t>(out_ - window_.get()), unread = available();
  png_memory larger;
  if (window_bytes_ > 0) {
    std::memcpy(larger.at_least(window + inflater::slack_bytes), window_.get(), used);
    window_ = std::move(larger);
    out_ = window_.get() + used;
    read_ = out_ - unread;
  } else {
    out_ = read_ = window_.at_least(window + inflater::slack_bytes);
  }
  window_bytes_ = window;
}

MILLRACE_INLINE const std::uint8_t* png_rows::next() {
  if (row_ == part_.rows) return nullptr;
  if (ready_next_ == ready_count_) unfilter_next_rows();
  ++row_;
  return ready_[ready_next_++];
}

MILLRACE_INLINE void png_rows::unfilter_next_rows() {
  const std::size_t stride = part_.row_bytes + 1;
  while (available() < stride)
    if (!inflate_more()) fail();
  const unsigned filter = *read_;
  if (filter >= unfilter::filters)
    throw_bad_png("the PNG has a damaged " + place() + ": got filter " + std::to_string(filter) + ", expected 0 to 4");
  const auto filtered = [&](std::size_t k) -> const std::uint8_t* { return read_ + k * stride + 1; };
  const std::size_t most = std::min({max_unfiltered_ - 1, part_.rows - row_, available() / stride});
  std::size_t count = 1;
  if (filter == 0 || filter == unfilter::paeth)
    while (count < most && read_[count * stride] == filter) ++count;
  if (filter == 0) {
    for (std::size_t k = 0; k < count; ++k) ready_[k] = filtered(k);
  } else {
    filtered_row rows[unfilter::max_rows];
    for (std::size_t k = 0; k < count; ++k) {
      std::uint8_t* const to = next_unfiltered_row();
      rows[k] = filtered_row{
          .from = filtered(k), .above = k == 0 ? above_ : ready_[k - 1], .to = to, .bytes = part_.row_bytes};
      ready_[k] = to;
    }
    if (count > 1) undo_.paeth_rows({rows, count});
    else undo_(filter, rows[0]);
  }
  ready_next_ = 0;
  ready_count_ = count;
  above_ = ready_[count - 1];
  above_in_window_ = filter == 0;
  read_ += count * stride;
}

MILLRACE_INLINE bool png_rows::inflate_more() noexcept {
  if (status_ != inflate_status::more) return false;
  const std::size_t missing = (part_.rows - row_) * (part_.row_bytes + 1) - available();
  const std::size_t now = std::min(missing, inflated_at_once);
  make_room(now);
  const std::uint8_t* const before = out_;
  status_ = zip_.run(window_.get(), out_, out_ + now);
  if (how_.to_the_end && how_.check_sums) adler_ = adler({before, static_cast<std::size_t>(out_ - before)}, adler_);
  return out_ != before;
}

MILLRACE_INLINE void png_rows::make_room(std::size_t bytes) noexcept {
  std::uint8_t* const begin = window_.get();
  const std::size_t used = static_cast<std::size_t>(out_ - begin);
  if (used + bytes <= window_bytes_) return;   // `used` may be larger: the last bytes may be beyond the limit
  const std::uint8_t* const unused = above_in_window_ ? above_ : read_;
  const std::size_t before = std::min(used - std::min(used, inflater::window_bytes),
                                      static_cast<std::size_t>(unused - begin));
  std::memmove(begin, begin + before, used - before);
  out_ -= before;
  read_ -= before;
  if (above_in_window_) above_ -= before;
}

MILLRACE_INLINE std::string png_rows::place() const {
  return "row " + std::to_string(row_) + " of " + std::to_string(part_.rows) +
         (part_.pass == 0 ? "" : " in pass " + std::to_string(part_.pass) + " of 7");
}

MILLRACE_INLINE void png_rows::fail() const {
  if (status_ == inflate_status::ended)
    throw_bad_png("the PNG has too few bytes: its compressed data ends inside " + place());
  if (status_ != inflate_status::cut_short)
    throw_bad_png("the PNG's compressed data is damaged at " + place() + ": got " + inflate_status_text(status_));
  switch (pieces_.ending()) {
    case png_image_data::end::bad_crc: throw_bad_png(png_crc_text(pieces_.bad_chunk()) + ", at " + place());
    case png_image_data::end::other_chunk:
      throw_bad_png("the PNG has too few bytes: its chunks of image data end inside " + place());
    default:
      throw_bad_png("the PNG is truncated: it ends after " + std::to_string(file_bytes_) + " bytes, inside " + place());
  }
}

MILLRACE_INLINE void png_rows::check_end() {
  // Other readers accept more output than rows too. The checksum is then not available.
  inflate_status last = available() > 0 ? inflate_status::more : status_;
  if (last == inflate_status::more && available() == 0) last = zip_.finish();
  if (last == inflate_status::ended && how_.check_sums && zip_.checksum() != adler_)
    throw_bad_png("the PNG's pixels have a wrong Adler-32: got " + hex(adler_, 8) + ", expected " +
                  hex(zip_.checksum(), 8));
  pieces_.check_remaining_chunks();
  if (last != inflate_status::more && last != inflate_status::ended)
    throw_bad_png("the PNG's compressed data is damaged after its last row: got " +
                  std::string(inflate_status_text(last)));
}

}}}   // namespace millrace::detail
