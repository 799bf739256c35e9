// Computes CRC-32C with the instruction of SSE4.2. base/crc32c.hpp uses this fast path.
//
//   if (mr::detail::cpu_has_sse42()) state = mr::detail::crc32c_by_instruction(data, state);
//
// Long data is processed in three interleaved lanes. The instruction has a latency of three cycles, but the processor
// can issue one instruction per cycle.
// Errors: none. Threads: pure functions; any thread.
#pragma once

#include <millrace/base/version.hpp>

#ifdef __x86_64__

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Computes the state after `zeros_bytes` zero bytes, with tables. This is possible because the effects of the state's
/// bits are independent and add up by xor.
template <std::size_t zeros_bytes>
class crc32c_zeros {
 public:
  __attribute__((target("sse4.2"))) crc32c_zeros() noexcept {
    for (std::size_t bit = 0; bit < 32; ++bit) {
      std::uint64_t state = std::uint64_t{1} << bit;
      for (std::size_t i = 0; i < zeros_bytes; i += 8) state = __builtin_ia32_crc32di(state, 0);
      for (std::size_t byte = 0; byte < 256; ++byte)
        if ((byte >> bit % 8 & 1) != 0) table_[bit / 8][byte] ^= static_cast<std::uint32_t>(state);
    }
  }
  std::uint32_t operator()(std::uint32_t state) const noexcept {
    return table_[0][state & 255] ^ table_[1][(state >> 8) & 255] ^ table_[2][(state >> 16) & 255] ^
           table_[3][state >> 24];
  }

 private:
  std::array<std::array<std::uint32_t, 256>, 4> table_{};
};

inline std::uint64_t crc32c_word(const std::byte* from) noexcept {
  std::uint64_t value;
  std::memcpy(&value, from, 8);
  return value;
}

/// Computes three lanes in parallel. To combine the lanes, it advances the state of each lane over as many zero bytes
/// as follow that lane.
template <std::size_t lane_bytes>
__attribute__((target("sse4.2"))) inline const std::byte* crc32c_by_lanes(const std::byte* at, const std::byte* end,
                                                                          std::uint32_t& state) noexcept {
  static const crc32c_zeros<lane_bytes> zeros;
  while (static_cast<std::size_t>(end - at) >= 3 * lane_bytes) {
    std::uint64_t first = state, second = 0, third = 0;
    for (const std::byte* const stop = at + lane_bytes; at != stop; at += 8) {
      first = __builtin_ia32_crc32di(first, crc32c_word(at));
      second = __builtin_ia32_crc32di(second, crc32c_word(at + lane_bytes));
      third = __builtin_ia32_crc32di(third, crc32c_word(at + 2 * lane_bytes));
    }
    state = zeros(static_cast<std::uint32_t>(first)) ^ static_cast<std::uint32_t>(second);
    state = zeros(state) ^ static_cast<std::uint32_t>(third);
    at += 2 * lane_bytes;
  }
  return at;
}

/// This function is compiled for SSE4.2 regardless of the program's flags. Call it only if the processor has SSE4.2.
__attribute__((target("sse4.2"))) inline std::uint32_t crc32c_by_instruction(std::span<const std::byte> data,
                                                                             std::uint32_t state) noexcept {
  const std::byte* at = data.data();
  const std::byte* const end = at + data.size();
  if (data.size() >= 3 * 4096) at = crc32c_by_lanes<4096>(at, end, state);
  if (data.size() >= 3 * 256) at = crc32c_by_lanes<256>(at, end, state);
  if (data.size() >= 3 * 64) at = crc32c_by_lanes<64>(at, end, state);   // of 2 KiB, a quarter is left here
  std::uint64_t wide = state;
  std::size_t left = static_cast<std::size_t>(end - at);
  for (; left >= 8; left -= 8, at += 8) wide = __builtin_ia32_crc32di(wide, crc32c_word(at));
  auto narrow = static_cast<std::uint32_t>(wide);
  for (; left > 0; --left, ++at) narrow = __builtin_ia32_crc32qi(narrow, std::to_integer<unsigned char>(*at));
  return narrow;
}

}}}  // namespace millrace::detail

#endif
