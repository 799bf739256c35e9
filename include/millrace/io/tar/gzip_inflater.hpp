// Decompresses gzip streams (RFC 1952), member by member, and checks their checksums.
//
//   mr::detail::gzip_inflater gzip;
//   auto step = gzip.inflate(input, buffer);   // removes what it read from `input`; buffer has step.made bytes
//   if (step.what == mr::detail::gzip_step::damaged) throw std::runtime_error(gzip.reason());
//   if (step.what == mr::detail::gzip_step::member_end) gzip.begin_member();  // if another member follows
//
// zlib reads the headers, with the CRC-16 that a header may have, and inflates. This file checks the CRC-32 and the
// length of the data at the end of each member. It does so because zlib's own CRC-32 takes a seventh of the total time.
// Here the CRC-32 uses carry-less products where the processor has them, else zlib's function.
// Source: V. Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009.
// Only this file includes zlib.
// Errors: std::bad_alloc; damage is a result. Memory: 45 KiB. Threads: one.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string>

#if !__has_include(<zlib.h>)
#error "millrace: zlib is not installed: apt-get install zlib1g-dev"
#endif
// zlib defines the macro FAR, which would break other code's enumerators of that name.
#pragma push_macro("FAR")
#include <zlib.h>
#pragma pop_macro("FAR")

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The result of one inflate(): the bytes made, and why it stopped.
struct gzip_step {
  enum outcome { made_bytes, wants_input, member_end, damaged };

  std::size_t made = 0;
  outcome what = made_bytes;
};

/// Returns the CRC-32 of `data` by zlib; `before` is the CRC-32 of the bytes before it.
inline std::uint32_t crc32_by_zlib(std::span<const std::byte> data, std::uint32_t before) noexcept {
  return static_cast<std::uint32_t>(
      ::crc32_z(before, reinterpret_cast<const unsigned char*>(data.data()), data.size()));
}

#if defined(__x86_64__)
/// Returns the same CRC-32 by carry-less products. It is compiled for these instructions whatever the compiler flags
/// are, so call it only where the processor has them.
inline __attribute__((target("pclmul"))) std::uint32_t crc32_by_products(std::span<const std::byte> data,
                                                                  std::uint32_t before) noexcept {
  using words = long long __attribute__((vector_size(16)));
  constexpr std::size_t step_bytes = 64;
  if (data.size() < 2 * step_bytes) return crc32_by_zlib(data, before);
  const std::byte* at = data.data();
  const auto load = [](const std::byte* from) noexcept {
    words value;
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  // x^(512 + 64 - 32), x^(512 - 32) and x^(128 + 64 - 32), x^(128 - 32), modulo the polynomial, bits reflected.
  constexpr words over_64_bytes{0x0154442bd4, 0x01c6e41596}, over_16_bytes{0x01751997d0, 0x00ccaa009e};
  words lanes[4] = {load(at), load(at + 16), load(at + 32), load(at + 48)};
  lanes[0] ^= words{static_cast<long long>(~before), 0};
  std::size_t left = data.size() - step_bytes;
  for (at += step_bytes; left >= step_bytes; at += step_bytes, left -= step_bytes)
    for (std::size_t i = 0; i < 4; ++i)
      lanes[i] = __builtin_ia32_pclmulqdq128(lanes[i], over_64_bytes, 0x00) ^
                 __builtin_ia32_pclmulqdq128(lanes[i], over_64_bytes, 0x11) ^ load(at + 16 * i);
  for (std::size_t i = 1; i < 4; ++i)
    lanes[i] ^= __builtin_ia32_pclmulqdq128(lanes[i - 1], over_16_bytes, 0x00) ^
                __builtin_ia32_pclmulqdq128(lanes[i - 1], over_16_bytes, 0x11);
  // These 16 bytes have the same remainder as all bytes read so far.
  const std::uint32_t folded = crc32_by_zlib(std::as_bytes(std::span(&lanes[3], 1)), ~std::uint32_t{0});
  return crc32_by_zlib({at, left}, folded);
}
#endif

/// Returns the CRC-32 of `data`; `before` is the CRC-32 of the bytes before it.
inline std::uint32_t gzip_crc32(std::span<const std::byte> data, std::uint32_t before = 0) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("pclmul")) return crc32_by_products(data, before);
#endif
  return crc32_by_zlib(data, before);
}

/// Decompresses one stream.
class gzip_inflater {
 public:
  gzip_inflater() {
    constexpr int largest_window_and_gzip = 15 + 16;
    if (::inflateInit2(&state_, largest_window_and_gzip) != Z_OK) throw std::bad_alloc();
  }
  gzip_inflater(const gzip_inflater&) = delete;
  gzip_inflater& operator=(const gzip_inflater&) = delete;
  ~gzip_inflater() { ::inflateEnd(&state_); }

  /// Starts the next member after the end of one. The next input byte is the first of its header.
  void begin_member() {
    ::inflateReset(&state_);
    ::inflateValidate(&state_, 1);
    in_header_ = true;
    crc_ = 0;
    made_bytes_ = 0;
  }

  /// Inflates until `buffer` is full, the input is used up, or the member ends. Removes from `input` what it has read.
  gzip_step inflate(std::span<const std::byte>& input, std::span<std::byte> buffer) {
    state_.next_out = reinterpret_cast<unsigned char*>(buffer.data());
    state_.avail_out = static_cast<unsigned>(buffer.size());
    int result = Z_OK;
    do {
      const unsigned given = static_cast<unsigned>(std::min<std::size_t>(input.size(), max_bytes_per_call));
      state_.next_in = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(input.data()));
      state_.avail_in = given;
      // Z_BLOCK stops between header and data; zlib's own checks are switched off from there on.
      result = ::inflate(&state_, in_header_ ? Z_BLOCK : Z_NO_FLUSH);
      take(input, given - state_.avail_in);
      if (in_header_ && (state_.data_type & behind_header) != 0) {
        in_header_ = false;
        ::inflateValidate(&state_, 0);
      }
    } while (result == Z_OK && !input.empty() && state_.avail_out > 0);
    gzip_step step{.made = buffer.size() - state_.avail_out};
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result != Z_OK && result != Z_BUF_ERROR && result != Z_STREAM_END) {
      reason_ = state_.msg ? state_.msg : "it asks for a dictionary";
      step.what = gzip_step::damaged;
      return step;
    }
    crc_ = gzip_crc32(buffer.first(step.made), crc_);
    made_bytes_ += step.made;
    if (result == Z_STREAM_END) step.what = trailer_is_right() ? gzip_step::member_end : gzip_step::damaged;
    else if (input.empty() && state_.avail_out > 0) step.what = gzip_step::wants_input;
    return step;
  }

  /// Returns the text for the damage.
  const std::string& reason() const noexcept { return reason_; }

 private:
  static constexpr std::size_t max_bytes_per_call = std::size_t{1} << 30;
  static constexpr int behind_header = 128;   // a bit of data_type, see inflate() in zlib.h
  static constexpr std::size_t trailer_bytes = 8;

  /// Keeps the last bytes read: the trailer may be spread over several inputs.
  void take(std::span<const std::byte>& input, std::size_t count) noexcept {
    const auto used = input.first(count);
    input = input.subspan(count);
    const std::size_t fresh = std::min(count, trailer_bytes);
    std::memmove(last_.data(), last_.data() + fresh, trailer_bytes - fresh);
    if (fresh > 0) std::memcpy(last_.data() + trailer_bytes - fresh, used.last(fresh).data(), fresh);
  }

  bool trailer_is_right() {
    const auto number = [this](std::size_t at) noexcept {
      std::uint32_t value = 0;
      for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(last_[at + i]);
      return value;
    };
    if (number(0) != crc_) {
      reason_ = "got data with the CRC-32 " + std::to_string(crc_) + ", expected " + std::to_string(number(0));
      return false;
    }
    if (number(4) == static_cast<std::uint32_t>(made_bytes_)) return true;
    reason_ = "got " + std::to_string(made_bytes_) + " bytes of data, expected " + std::to_string(number(4)) +
              " (modulo 2^32)";
    return false;
  }

  ::z_stream state_{};
  bool in_header_ = true;
  std::uint32_t crc_ = 0;
  std::uint64_t made_bytes_ = 0;   // bytes of this member
  std::array<std::byte, trailer_bytes> last_{};
  std::string reason_;
};

}}}  // namespace millrace::detail
