// Gives the stored rows of a PNG, or of one pass of an interlaced one: inflated, and with their filters undone.
//
//   mr::detail::png_rows rows;                                     // kept from image to image
//   rows.begin(file, header, {.to_the_end = true});
//   rows.begin_rows({.row_bytes = 1'500, .rows = 300});            // the next 300 rows
//   while (const std::uint8_t* row = rows.next()) use(row);        // valid until the next call
//   rows.check_end();
//
// The stream is inflated into a window of some 100 KiB, a part at a time. Rows without a filter are not copied out of
// it. Inflating stops with the last row asked for. begin_rows() may be called again, for the next pass.
// Rows may be read `slack_bytes` beyond their end.
// Errors: next() throws data_error at the first row that is not complete. All rows before it have been given, and are
// right. check_end() throws data_error for damage behind the last row. Threads: one at a time.
// Memory: the window and a few rows. The file's size bounds the length of a row, so that a forged header takes none.
#pragma once

#include <millrace/image/png/png_header.hpp>
#include <millrace/image/png/unfilter.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Memory for `bytes` bytes, which is taken anew only to grow. Its content is undefined until it is written.
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
  static constexpr std::size_t max_inflation = 1'032;   ///< 258 bytes for two bits

  struct reading {
    bool to_the_end = false;    ///< check_end() will be called
    bool check_sums = true;
  };
  struct part {
    std::size_t row_bytes = 0;   ///< 1 or more
    std::size_t rows = 0;
    unsigned pass = 0;           ///< 1 to 7 in an interlaced image, for messages
  };

  png_rows() = default;
  png_rows(const png_rows&) = delete;
  png_rows& operator=(const png_rows&) = delete;

  /// Begins a file.
  void begin(std::span<const std::byte> file, const png_header& header, const reading& how);

  /// Asks for the next rows.
  void begin_rows(const part& rows);

  /// Returns the next row; null behind the last one that was asked for.
  const std::uint8_t* next();

  /// Reads on to the end of the stream and of the file. Throws data_error if they are damaged or cut short.
  void check_end();

  /// Throws data_error if the file is too short for rows of so many bytes, with their filters.
  void expect(std::uint64_t bytes) const;

 private:
  static constexpr std::size_t inflated_at_once = std::size_t{32} << 10, long_row_bytes = std::size_t{64} << 10;

  std::size_t available() const noexcept { return static_cast<std::size_t>(out_ - read_); }
  void undo_next_rows();
  /// Inflates more. Returns false if there is no more.
  bool inflate_more() noexcept;
  void make_room(std::size_t bytes) noexcept;
  [[noreturn]] void fail() const;
  std::string place() const;
  std::uint8_t* next_kept_row() noexcept { return kept_.get() + kept_next_++ % kept_rows_ * kept_stride_; }

  png_image_data pieces_;
  inflater zip_;
  unfilter undo_;
  reading how_;
  std::size_t file_bytes_ = 0, stored_bytes_ = 0;
  inflate_status status_ = inflate_status::more;
  std::uint32_t adler_ = 1;

  // The window: inflated bytes up to out_, of which those from read_ on are not used yet.
  png_memory window_;
  std::size_t window_bytes_ = 0;
  std::uint8_t* out_ = nullptr;
  std::uint8_t* read_ = nullptr;

  part part_;
  std::size_t row_ = 0;                              // number of rows that were given
  std::array<const std::uint8_t*, unfilter::max_rows> ready_{};
  std::size_t ready_next_ = 0, ready_count_ = 0;     // of the rows in ready_
  const std::uint8_t* above_ = nullptr;              // the last of them
  bool above_in_window_ = false;

  png_memory kept_;                                  // rows whose filters were undone; one more is zeros
  std::size_t kept_rows_ = 1, kept_stride_ = 0, kept_next_ = 0;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/png/impl/png_rows.inl>
#endif
