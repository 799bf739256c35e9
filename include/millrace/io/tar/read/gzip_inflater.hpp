// Decompresses gzip streams (RFC 1952), which consist of members, and checks the checksum of each member.
//
//   mr::detail::gzip_inflater gzip;
//   auto step = gzip.inflate(input, buffer);   // removes bytes from `input`; buffer gets step.size bytes
//   if (step.outcome == mr::detail::gzip_step::damaged) throw std::runtime_error(gzip.reason());
//   if (step.outcome == mr::detail::gzip_step::member_end) gzip.begin_member();  // if another member follows
//
// zlib reads the headers, checks their CRC-16, and inflates the data. This class, not zlib, checks the CRC-32 and the
// length of each member's data, because zlib's CRC-32 is slower.
// Only this file includes zlib.
// Errors: std::bad_alloc. Damage is a result, not an error. Memory: 45 KiB. Threads: not thread-safe.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#if !__has_include(<zlib.h>)
#error "millrace: zlib is not installed: apt-get install zlib1g-dev"
#endif
// zlib defines the macro FAR, which would break enumerators of that name in other code.
#pragma push_macro("FAR")
#include <zlib.h>
#pragma pop_macro("FAR")

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The result of one inflate(): the number of bytes, and the reason why inflate() stopped.
struct gzip_step {
  enum stop_reason { has_bytes, needs_input, member_end, damaged };

  std::size_t size = 0;
  stop_reason outcome = has_bytes;
};

/// Decompresses one stream.
class gzip_inflater {
 public:
  gzip_inflater();
  gzip_inflater(const gzip_inflater&) = delete;
  gzip_inflater& operator=(const gzip_inflater&) = delete;
  ~gzip_inflater() { ::inflateEnd(&state_); }

  /// Starts the next member. Requires that the previous member has ended, and that the next input byte is the first
  /// byte of a header.
  void begin_member();

  /// Inflates until `buffer` is full, the input is consumed, or the member ends. Removes the consumed bytes from the
  /// front of `input`.
  gzip_step inflate(std::span<const std::byte>& input, std::span<std::byte> buffer);

  /// Returns the description of the damage.
  const std::string& reason() const noexcept { return reason_; }

 private:
  static constexpr std::size_t max_bytes_per_call = std::size_t{1} << 30;
  // The bit that zlib sets in z_stream::data_type after it has read a header (see inflate() in zlib.h).
  static constexpr int after_header = 128;
  static constexpr std::size_t trailer_bytes = 8;

  /// Saves the last bytes of the input, because the trailer of a member may be spread over several inputs.
  void consume(std::span<const std::byte>& input, std::size_t count) noexcept;
  bool trailer_is_right();

  ::z_stream state_{};
  bool in_header_ = true;
  std::uint32_t crc_ = 0;
  std::uint64_t member_bytes_ = 0;   // number of inflated bytes of this member
  std::array<std::byte, trailer_bytes> last_{};
  std::string reason_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/tar/read/impl/gzip_inflater.inl>
#endif
