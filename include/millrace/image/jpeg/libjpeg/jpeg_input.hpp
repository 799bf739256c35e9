// Wraps one libjpeg decompressor. The wrapper enforces limits, decides which warnings indicate damage, and hides
// longjmp.
//
//   struct reader : private mr::detail::jpeg_input {
//     reader() : mr::detail::jpeg_input(omit_hint) {}
//     void read(std::span<const std::byte> file) {
//       open(file, {.max_scans = 100});                   // the header; `file` must outlive the decoding
//       if (!decode()) fail();                            // throws libjpeg's error
//     }
//     bool decode() noexcept { if (setjmp(escape_) != 0) return false; /* libjpeg's calls */ return true; }
//   };
//
// libjpeg reports errors by longjmp, which must not skip an object with a destructor. Therefore every function that
// calls libjpeg is noexcept, sets escape_ first, and owns no resources. On an error, such a function returns false, and
// the caller then calls fail().
// Surplus bytes between scans count as damage, because they may be coded data that libjpeg does not decode. Surplus
// bytes directly after the start-of-image marker count as damage, too. Surplus bytes at other positions count only as a
// warning. No state of one image affects the next.
// Errors: data_error for the file; io_error if libjpeg cannot be initialized.
// Threads: one thread at a time; a single thread must decode an image from beginning to end.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/limits.hpp>
#include <millrace/image/jpeg/libjpeg/libjpeg.hpp>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The limits that a decoder enforces for one image.
struct jpeg_limits {
  int max_scans = picture_limits{}.max_scans;
  std::size_t max_memory_bytes = picture_limits{}.max_memory_bytes;   ///< for the coefficients of a progressive JPEG
  bool accept_damaged = false;   ///< uses the decodable part of a damaged file, and counts the file
};

/// The event counts of a decoder since its construction.
struct libjpeg_counts {
  std::uint64_t pictures = 0;      ///< decoded images
  std::uint64_t progressive = 0;   ///< progressive images
  std::uint64_t damaged = 0;       ///< images accepted in spite of damage
  std::uint64_t warnings = 0;      ///< warnings of libjpeg of any kind

  /// Returns the counts since `before`.
  libjpeg_counts operator-(const libjpeg_counts& before) const noexcept {
    return {pictures - before.pictures, progressive - before.progressive, damaged - before.damaged,
            warnings - before.warnings};
  }
};

class jpeg_input {
 public:
  jpeg_input(const jpeg_input&) = delete;
  jpeg_input& operator=(const jpeg_input&) = delete;

  /// Closes an image that was opened but will not be decoded.
  void abandon() noexcept { jpeg_abort_decompress(&info_); }

 protected:
  /// `damage_hint` is a string literal. It is appended to the hint "Fetch the file again" of errors that report damage.
  explicit jpeg_input(const char* damage_hint) noexcept : damage_hint_(damage_hint) {}
  ~jpeg_input() { jpeg_destroy_decompress(&info_); }

  void open(std::span<const std::byte> data, const jpeg_limits& limits) {
    limits_ = limits;
    damaged_ = reads_end_ = false;
    begins_with_marker_ = data.size() > 2 && data[2] == std::byte{0xff};
    progress_.max_scans = limits.max_scans;
    // libjpeg retains the tables of a file, and would use them for a next file that does not define tables.
    jpeg_destroy_decompress(&info_);
    if (!create())
      throw io_error("libjpeg could not be started: " + printable(text()), "Free some memory on this machine",
                     {.stage = "jpeg"});
    if (!read_header(data)) fail();
  }

  [[noreturn]] MILLRACE_RARE void fail() {
    abandon();
    const error_location where{.stage = "jpeg"};
    if (code_ == too_many_scans)
      throw data_error("the JPEG has more than " + std::to_string(limits_.max_scans) + " scans",
                       "Raise max_scans if you trust the file", where);
    if (code_ == JERR_NO_BACKING_STORE || code_ == JERR_OUT_OF_MEMORY)
      throw data_error("decoding the JPEG needs more than " + std::to_string(limits_.max_memory_bytes) +
                           " bytes of memory (libjpeg: " + text() + ")",
                       "Raise max_memory_bytes, or convert the file to a baseline JPEG", where);
    throw data_error("the JPEG cannot be decoded: " + printable(text()),
                     std::string("Fetch the file again") + (damaged_ ? damage_hint_ : omit_hint), where);
  }

  static constexpr const char* omit_hint = ", or leave the sample out";

  jpeg_decompress_struct info_{};
  std::jmp_buf escape_{};
  bool damaged_ = false;
  bool begins_with_marker_ = false;   // if false, the first segment is lost, and Pillow refuses the file
  bool reads_end_ = false;            // if true, all pixels are decoded, and later damage is only a warning
  libjpeg_counts counts_;

 private:
  enum : int { no_code = 0, too_many_scans = -1 };

  struct scan_watch {
    jpeg_progress_mgr base;
    int max_scans;
  };

  static jpeg_input& self(j_common_ptr info) noexcept { return *static_cast<jpeg_input*>(info->client_data); }

  [[noreturn]] static void leave(j_common_ptr info) {
    jpeg_input& d = self(info);
    d.code_ = info->err->msg_code;
    info->err->format_message(info, d.text_);
    std::longjmp(d.escape_, 1);
  }

  static void on_message(j_common_ptr info, int level) {
    if (level >= 0) return;
    jpeg_input& d = self(info);
    ++d.counts_.warnings;
    constexpr int end_of_image = 0xd9;
    switch (info->err->msg_code) {
      case JWRN_EXTRANEOUS_DATA:
        if (d.begins_with_marker_ && reinterpret_cast<j_decompress_ptr>(info)->input_scan_number == 0) break;
        if (info->err->msg_parm.i[1] == end_of_image) break;
        [[fallthrough]];
      case JWRN_ARITH_BAD_CODE:
      case JWRN_HIT_MARKER:
      case JWRN_HUFF_BAD_CODE:
      case JWRN_JPEG_EOF:
      case JWRN_MUST_RESYNC:
      case JWRN_BOGUS_PROGRESSION:
        if (d.reads_end_) break;
        d.damaged_ = true;
        if (!d.limits_.accept_damaged) leave(info);
        break;
      default: break;
    }
  }

  static void on_progress(j_common_ptr info) {
    jpeg_input& d = self(info);
    if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= d.progress_.max_scans) return;
    d.code_ = too_many_scans;
    std::longjmp(d.escape_, 1);
  }

  bool create() noexcept {
    info_.err = jpeg_std_error(&messages_);
    messages_.error_exit = [](j_common_ptr info) { leave(info); };
    messages_.emit_message = [](j_common_ptr info, int level) { on_message(info, level); };
    messages_.output_message = [](j_common_ptr) {};
    info_.client_data = this;
    if (setjmp(escape_) != 0) return false;
    jpeg_create_decompress(&info_);
    info_.client_data = this;
    progress_.base.progress_monitor = [](j_common_ptr info) { on_progress(info); };
    info_.progress = &progress_.base;
    return true;
  }

  bool read_header(std::span<const std::byte> data) noexcept {
    if (setjmp(escape_) != 0) return false;
    constexpr std::size_t most = std::numeric_limits<long>::max();
    info_.mem->max_memory_to_use = static_cast<long>(std::min(limits_.max_memory_bytes, most));
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(data.data()), data.size());
    jpeg_read_header(&info_, 1);
    return true;
  }

  std::string text() const { return text_; }

  jpeg_error_mgr messages_{};
  scan_watch progress_{};
  const char* damage_hint_;
  int code_ = no_code;
  char text_[JMSG_LENGTH_MAX] = {};
  jpeg_limits limits_;
};

}}}   // namespace millrace::detail
