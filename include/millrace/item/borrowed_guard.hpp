// Detects borrowed bytes whose memory was freed or changed between the creation of an image plan and the decoding of
// the image.
//
//   const mr::detail::borrowed_guard guard(data);       // when the plan is created
//   guard.check(data, "an image", where);               // before the bytes are decoded
//
// Borrowed bytes are a view that does not own its memory (item/bytes.hpp). The guard checks that the pages of the bytes
// still exist, and compares a checksum of the first, the middle and the last 64 bytes.
// Errors: setup_error, because the defect is in the program and not in the data. Threads: not synchronized.
// Cost: about 0.5 us for borrowed bytes, nothing for bytes that own their memory.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/bytes.hpp>

#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A checksum of borrowed bytes.
class borrowed_guard {
 public:
  borrowed_guard() = default;
  explicit borrowed_guard(const bytes& data) noexcept
      : checksum_(data.block() || data.empty() ? 0 : checksum_of(data)) {}

  /// Throws setup_error if the bytes are borrowed and have changed since the guard was constructed. `name` describes
  /// the bytes in the message, for example "an image".
  void check(const bytes& data, const char* name, const error_location& where) const {
    if (checksum_ != 0) check_borrowed(data, name, where);
  }

 private:
  static std::uint64_t checksum_of(const bytes& data) noexcept;
  void check_borrowed(const bytes& data, const char* name, const error_location& where) const;

  std::uint64_t checksum_ = 0;   // 0 if the bytes are not borrowed
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/item/impl/borrowed_guard.inl>
#endif
