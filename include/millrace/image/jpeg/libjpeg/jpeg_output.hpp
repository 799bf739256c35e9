// Wraps one use of a libjpeg compressor that writes to memory; jpeg_input.hpp is the counterpart for the decompressor.
//
//   struct writer : private mr::detail::jpeg_output {
//     std::vector<std::byte> write() {
//       if (!compress()) throw mr::setup_error("the image cannot be encoded: " + text(), "Change the options");
//       return take();
//     }
//     bool compress() noexcept { if (setjmp(escape_) != 0) return false; /* libjpeg's calls */ return true; }
//   };
//
// libjpeg's memory destination allocates a larger buffer if the file does not fit. If encoding then fails, this buffer
// leaks. Therefore this class implements its own destination. jpeg_input.hpp describes the rules for longjmp.
// Errors: text() returns libjpeg's message; io_error if libjpeg cannot be initialized. Threads: one thread at a time.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/image/jpeg/libjpeg/libjpeg.hpp>

#include <csetjmp>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class jpeg_output {
 public:
  jpeg_output(const jpeg_output&) = delete;
  jpeg_output& operator=(const jpeg_output&) = delete;

 protected:
  jpeg_output() {
    if (create()) return;
    jpeg_destroy_compress(&info_);
    throw io_error("libjpeg could not be started: " + printable(text_), "Free memory", {.stage = "jpeg"});
  }
  ~jpeg_output() { jpeg_destroy_compress(&info_); }

  std::string text() const { return printable(text_); }

  /// Returns the finished file.
  std::vector<std::byte> take() noexcept { return std::move(file_); }

  jpeg_compress_struct info_{};
  std::jmp_buf escape_{};

 private:
  static jpeg_output& self(j_common_ptr info) noexcept { return *static_cast<jpeg_output*>(info->client_data); }

  [[noreturn]] static void leave(j_common_ptr info) {
    jpeg_output& output = self(info);
    info->err->format_message(info, output.text_);
    std::longjmp(output.escape_, 1);
  }

  bool create() noexcept {
    info_.err = jpeg_std_error(&messages_);
    messages_.error_exit = [](j_common_ptr info) { leave(info); };
    messages_.emit_message = [](j_common_ptr, int) {};
    messages_.output_message = [](j_common_ptr) {};
    info_.client_data = this;
    if (setjmp(escape_) != 0) return false;
    jpeg_create_compress(&info_);
    destination_.init_destination = [](j_compress_ptr info) { grow(info); };
    destination_.empty_output_buffer = [](j_compress_ptr info) -> decltype(info->optimize_coding) {
      grow(info);
      return 1;
    };
    destination_.term_destination = [](j_compress_ptr info) {
      auto& file = self(reinterpret_cast<j_common_ptr>(info)).file_;
      file.resize(file.size() - info->dest->free_in_buffer);   // the file only shrinks, so nothing is allocated
    };
    info_.dest = &destination_;
    return true;
  }

  /// Doubles the buffer. libjpeg requests more space only when the entire buffer is full.
  static void grow(j_compress_ptr info) {
    auto* common = reinterpret_cast<j_common_ptr>(info);
    auto& file = self(common).file_;
    const std::size_t full = file.size();
    if (!resize(file, full == 0 ? first_bytes : 2 * full)) {
      info->err->msg_code = JERR_OUT_OF_MEMORY;
      info->err->msg_parm.i[0] = 0;
      leave(common);
    }
    info->dest->next_output_byte = reinterpret_cast<JOCTET*>(file.data() + full);
    info->dest->free_in_buffer = file.size() - full;
  }

  static bool resize(std::vector<std::byte>& file, std::size_t size) noexcept {
    try {
      file.resize(size);
      return true;
    } catch (...) {
      return false;
    }
  }

  static constexpr std::size_t first_bytes = 1 << 16;

  jpeg_error_mgr messages_{};
  jpeg_destination_mgr destination_{};
  char text_[JMSG_LENGTH_MAX] = {};
  std::vector<std::byte> file_;
};

}}}   // namespace millrace::detail
