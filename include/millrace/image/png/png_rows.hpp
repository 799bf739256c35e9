// Delivers the stored rows of a PNG, or of one pass of an interlaced PNG: inflated and unfiltered.
//
//   mr::detail::png_rows rows;                                     // reused for all images
//   rows.begin(file, header, {.to_the_end = true});
//   rows.begin_rows({.row_bytes = 1'500, .rows = 300});            // the next 300 rows
//   while (const std::uint8_t* row = rows.next()) use(row);        // valid until the next call
//   rows.check_end();
//
// The stream is inflated into a window of about 100 KiB, a part at a time. Inflating stops after the last requested
// row. Call begin_rows() again for the next pass.
// Callers may read `slack_bytes` bytes beyond the end of a row.
// Errors: next() throws data_error at the first row that is not complete. All rows before that row have been delivered
// and are correct. check_end() throws data_error for damage after the last row. Threads: not thread-safe; one thread at
// a time.
// Memory: the window and a few rows. A forged header cannot cause a large allocation, because the size of the file
// limits the length of a row.
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
  static constexpr std::size_t max_inflation = 1'032;   ///< 258 bytes of output per two bits of input

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

  /// Begins the next rows.
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

  // The window contains inflated bytes up to out_. Bytes from read_ to out_ are not yet used.
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
