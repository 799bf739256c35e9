// Definitions for gzip_inflater.hpp.
#pragma once

#include <millrace/io/tar/read/gzip_inflater.hpp>

#include <millrace/base/crc32c.hpp>

#include <algorithm>
#include <cstring>
#include <new>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE gzip_inflater::gzip_inflater() {
  constexpr int largest_window_and_gzip = 15 + 16;
  if (::inflateInit2(&state_, largest_window_and_gzip) != Z_OK) throw std::bad_alloc();
}

MILLRACE_INLINE void gzip_inflater::begin_member() {
  ::inflateReset(&state_);
  ::inflateValidate(&state_, 1);
  in_header_ = true;
  crc_ = 0;
  member_bytes_ = 0;
}

MILLRACE_INLINE gzip_step gzip_inflater::inflate(std::span<const std::byte>& input, std::span<std::byte> buffer) {
  state_.next_out = reinterpret_cast<unsigned char*>(buffer.data());
  state_.avail_out = static_cast<unsigned>(buffer.size());
  int result = Z_OK;
  do {
    const unsigned offered = static_cast<unsigned>(std::min<std::size_t>(input.size(), max_bytes_per_call));
    state_.next_in = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(input.data()));
    state_.avail_in = offered;
    // Z_BLOCK stops after the header. Then zlib's own checks are switched off.
    result = ::inflate(&state_, in_header_ ? Z_BLOCK : Z_NO_FLUSH);
    consume(input, offered - state_.avail_in);
    if (in_header_ && (state_.data_type & after_header) != 0) {
      in_header_ = false;
      ::inflateValidate(&state_, 0);
    }
  } while (result == Z_OK && !input.empty() && state_.avail_out > 0);
  gzip_step step{.size = buffer.size() - state_.avail_out};
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  if (result != Z_OK && result != Z_BUF_ERROR && result != Z_STREAM_END) {
    reason_ = state_.msg ? state_.msg : "it needs a dictionary";
    step.outcome = gzip_step::damaged;
    return step;
  }
  crc_ = crc32(buffer.first(step.size), crc_);
  member_bytes_ += step.size;
  if (result == Z_STREAM_END) step.outcome = trailer_is_right() ? gzip_step::member_end : gzip_step::damaged;
  else if (input.empty() && state_.avail_out > 0) step.outcome = gzip_step::needs_input;
  return step;
}

MILLRACE_INLINE void gzip_inflater::consume(std::span<const std::byte>& input, std::size_t count) noexcept {
  const auto used = input.first(count);
  input = input.subspan(count);
  const std::size_t fresh = std::min(count, trailer_bytes);
  std::memmove(last_.data(), last_.data() + fresh, trailer_bytes - fresh);
  if (fresh > 0) std::memcpy(last_.data() + trailer_bytes - fresh, used.last(fresh).data(), fresh);
}

MILLRACE_RARE bool gzip_inflater::trailer_is_right() {
  const auto number = [this](std::size_t at) noexcept {
    std::uint32_t value = 0;
    for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(last_[at + i]);
    return value;
  };
  if (number(0) != crc_) {
    reason_ = "got data with the CRC-32 " + std::to_string(crc_) + ", expected " + std::to_string(number(0));
    return false;
  }
  if (number(4) == static_cast<std::uint32_t>(member_bytes_)) return true;
  reason_ = "got " + std::to_string(member_bytes_) + " bytes of data, expected " + std::to_string(number(4)) +
            " (modulo 2^32)";
  return false;
}

}}}   // namespace millrace::detail
