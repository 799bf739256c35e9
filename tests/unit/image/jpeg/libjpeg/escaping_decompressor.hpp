// libjpeg's decompressor, which prints nothing and reports an error by longjmp to a function of the caller.
//
//   if (setjmp(escape_) != 0) return false;          // in each function of a derived class that calls libjpeg
//   jpeg_read_header(&info_, 1);
#pragma once

#include <millrace/image/jpeg/libjpeg/libjpeg.hpp>

#include <csetjmp>

namespace slow {

class escaping_decompressor {
 public:
  escaping_decompressor() = default;
  escaping_decompressor(const escaping_decompressor&) = delete;
  escaping_decompressor& operator=(const escaping_decompressor&) = delete;

 protected:
  /// The caller calls jpeg_destroy_decompress().
  void create() noexcept {
    info_.err = jpeg_std_error(&messages_);
    messages_.error_exit = [](j_common_ptr info) { std::longjmp(*static_cast<std::jmp_buf*>(info->client_data), 1); };
    messages_.output_message = [](j_common_ptr) {};
    info_.client_data = &escape_;   // for errors during its creation
    jpeg_create_decompress(&info_);
    info_.client_data = &escape_;
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr messages_{};
  std::jmp_buf escape_{};
};

}  // namespace slow
