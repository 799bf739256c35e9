// Delivers the stored rows of a PNG, or of one pass of an interlaced PNG: inflated and unfiltered.
//
//   mr::detail::png_rows rows;                                     // reused for all images
//   rows.begin(file, header, {.to_the_end = true});
//   rows.begin_rows({.row_bytes = 1'500, .rows = 300});            // the next 300 rows
//   while (const std::uint8_t* row = rows.next()) use(row);        // valid until the next call
//   rows.check_end();
//
// The stream is inflated, a part at a time, into a window of 288 KiB plus two rows. Inflating stops after the last
// requested row. Call begin_rows() again for the next pass of an interlaced image. Callers may read `slack_bytes` bytes
// beyond the end of a row.
// Errors: next() throws data_error at the first row that is incomplete or damaged. All rows before that row have been
// delivered and are correct. check_end() throws data_error for damage after the last row. Threads: not thread-safe; one
// thread at a time.
// Memory: the window and a few rows. A forged header cannot cause a large allocation, because the size of the file
// limits the length of a row.
#pragma once

#include <millrace/base/limits.hpp>
#include <millrace/image/png/inflate.hpp>
#include <millrace/image/png/unfilter.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Reads the chunks of a PNG: the header up to the image data, then the pieces of the data.
//
//   const mr::detail::png_header h = mr::detail::read_png_header(file, {.max_pixels = 1'000'000});
//   mr::detail::png_image_data pieces(file, h.data_at);          // an inflate_input
//
// The CRC of each IHDR, PLTE and IDAT chunk is checked before the chunk's bytes are used. Unknown critical chunks are
// errors. Ancillary chunks are skipped, except tRNS and eXIf: png_header contains their bytes. Nothing is allocated.
// Sizes that PNG forbids or that exceed the limit are rejected.
// Errors: data_error with the stage "png". Lifetime: spans refer to the bytes of the file. Threads: pure functions; any
// thread.
// Source: ISO/IEC 15948, clauses 5 and 11.2.

/// The color types of PNG, with their values in files.
enum class png_color : std::uint8_t { gray = 0, rgb = 2, palette = 3, gray_alpha = 4, rgba = 6 };

struct png_limits {
  std::uint64_t max_pixels = picture_limits{}.max_pixels;
  bool check_sums = true;   ///< checks CRC and Adler-32; false only in tests that change random bytes
};

/// The contents of the chunks before the image data.
struct png_header {
  std::size_t width = 0, height = 0;   ///< pixels, 1 or more
  unsigned depth = 8;                  ///< bits of a channel value or palette index: 1, 2, 4, 8 or 16
  png_color color = png_color::rgb;
  bool interlaced = false;
  std::span<const std::byte> palette{};        ///< PLTE: at most 256 RGB colors
  std::span<const std::byte> transparency{};   ///< tRNS, as stored; empty if there is none
  bool transparency_intact = true;             ///< whether the CRC of tRNS is correct
  std::span<const std::byte> exif{};   ///< eXIf before the image data; empty if there is none or its CRC is wrong
  std::size_t data_at = 0;             ///< offset of the first IDAT chunk

  std::size_t channels() const noexcept {
    return color == png_color::rgba ? 4 : color == png_color::rgb ? 3 : color == png_color::gray_alpha ? 2 : 1;
  }
  std::size_t pixel_bits() const noexcept { return channels() * depth; }
  /// Returns the number of bytes per pixel for the filters, at least 1.
  std::size_t filter_bytes() const noexcept { return (pixel_bits() + 7) / 8; }
  /// Returns the number of bytes in a row of `pixels` pixels, without the filter byte.
  std::size_t row_bytes(std::size_t pixels) const noexcept { return (pixels * pixel_bits() + 7) / 8; }
};

/// One chunk, or the part of a chunk that the file contains.
struct png_chunk {
  std::string_view name{};   ///< four bytes
  std::span<const std::byte> data{};
  std::size_t at = 0;      ///< offset of the chunk
  std::size_t end = 0;     ///< offset of the chunk's end, if the chunk is complete
  bool complete = false;   ///< whether the file contains the complete chunk
  std::uint32_t stored_crc = 0;

  bool critical() const noexcept { return (name[0] & 32) == 0; }
  std::uint32_t computed_crc() const noexcept;
};

/// Returns the chunk at this offset; nothing if the file ends before the end of the chunk's name.
std::optional<png_chunk> png_chunk_at(std::span<const std::byte> file, std::size_t at) noexcept;

[[noreturn]] void throw_bad_png(std::string message, std::string hint = {});

/// Throws data_error if the chunk is truncated, or if its name or its CRC is wrong.
void check_png_chunk(const png_chunk& chunk, bool check_sums);

/// Reads all chunks before the image data. Throws data_error if the file is not a PNG, is damaged, or exceeds the
/// limits.
png_header read_png_header(std::span<const std::byte> file, const png_limits& limits = {});

/// Delivers the bytes of the IDAT chunks. The CRC of a chunk is checked before its bytes are returned. For a truncated
/// chunk, the available bytes are returned.
class png_image_data final : public inflate_input {
 public:
  enum class end : std::uint8_t { none, other_chunk, cut_short, bad_crc };

  png_image_data() = default;
  png_image_data(std::span<const std::byte> file, std::size_t data_at, bool check_sums = true) noexcept
      : file_(file), at_(data_at), check_sums_(check_sums) {}

  std::span<const std::uint8_t> next() noexcept override;

  /// Returns the reason why next() returned an empty span or the bytes of a truncated chunk.
  end ending() const noexcept { return ending_; }
  /// Returns the chunk with the wrong CRC, if ending() is `bad_crc`.
  const png_chunk& bad_chunk() const noexcept { return bad_; }

  /// Reads the remaining chunks. Throws data_error if a critical chunk is damaged or unknown, or if there is
  /// no IEND.
  void check_remaining_chunks();

 private:
  std::span<const std::byte> file_{};
  std::size_t at_ = 0;
  bool check_sums_ = true;
  end ending_ = end::none;
  png_chunk bad_;
};

/// Returns the message for a wrong CRC.
std::string png_crc_text(const png_chunk& chunk);

/// A buffer that is reallocated only to grow. Its contents are undefined until they are written.
class png_memory {
 public:
  std::uint8_t* at_least(std::size_t bytes) {
    if (bytes > bytes_) {
      memory_.reset();
      bytes_ = 0;
      memory_.reset(new std::uint8_t[bytes]);   // libc++ 14 has no std::make_unique_for_overwrite
      bytes_ = bytes;
    }
    return memory_.get();
  }
  std::uint8_t* get() const noexcept { return memory_.get(); }

 private:
  std::unique_ptr<std::uint8_t[]> memory_;
  std::size_t bytes_ = 0;
};

class png_rows {
 public:
  static constexpr std::size_t slack_bytes = 64;
  static constexpr std::size_t max_inflation = 1'032;   ///< maximum bytes of output per byte of input: 258 per two bits

  struct reading {
    bool to_the_end = false;   ///< whether check_end() will be called
    bool check_sums = true;
  };
  struct part {
    std::size_t row_bytes = 0;   ///< 1 or more
    std::size_t rows = 0;
    unsigned pass = 0;   ///< 1 to 7 in an interlaced image, else 0; for messages
  };

  png_rows() = default;
  png_rows(const png_rows&) = delete;
  png_rows& operator=(const png_rows&) = delete;

  /// Begins a file.
  void begin(std::span<const std::byte> file, const png_header& header, const reading& how);

  /// Begins the rows of the image, or of the next pass of an interlaced image.
  void begin_rows(const part& rows);

  /// Returns the next row; null after the last requested row.
  const std::uint8_t* next();

  /// Continues to the end of the stream and of the file. Throws data_error if either is damaged or truncated.
  void check_end();

  /// Throws data_error if the file is too short for `bytes` bytes of rows, including the filter bytes.
  void expect(std::uint64_t bytes) const;

 private:
  static constexpr std::size_t inflated_at_once = std::size_t{32} << 10, long_row_bytes = std::size_t{64} << 10;

  std::size_t available() const noexcept { return static_cast<std::size_t>(out_ - read_); }
  void unfilter_next_rows();
  /// Inflates more bytes. Returns false if no more bytes are available.
  bool inflate_more() noexcept;
  void make_room(std::size_t bytes) noexcept;
  [[noreturn]] void fail() const;
  std::string place() const;
  std::uint8_t* next_unfiltered_row() noexcept {
    return unfiltered_.get() + unfiltered_next_++ % max_unfiltered_ * unfiltered_stride_;
  }

  png_image_data pieces_;
  inflater zip_;
  unfilter undo_;
  reading how_;
  std::size_t file_bytes_ = 0, stored_bytes_ = 0;
  inflate_status status_ = inflate_status::more;
  std::uint32_t adler_ = 1;

  // The window contains inflated bytes up to out_. Bytes from read_ to out_ have not been unfiltered yet.
  png_memory window_;
  std::size_t window_bytes_ = 0;
  std::uint8_t* out_ = nullptr;
  std::uint8_t* read_ = nullptr;

  part part_;
  std::size_t row_ = 0;   // number of delivered rows
  std::array<const std::uint8_t*, unfilter::max_rows> ready_{};
  std::size_t ready_next_ = 0, ready_count_ = 0;   // next row in ready_, and number of rows in ready_
  const std::uint8_t* above_ = nullptr;            // the row above the next rows; zeros at the start
  bool above_in_window_ = false;

  png_memory unfiltered_;   // unfiltered rows, and one row of zeros
  std::size_t max_unfiltered_ = 1, unfiltered_stride_ = 0, unfiltered_next_ = 0;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/png/impl/png_rows.inl>
#endif
