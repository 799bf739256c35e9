// Defines what crc32c.hpp declares.
#pragma once

#include <millrace/base/crc32c.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE crc32c_tables make_crc32c_tables() noexcept {
  crc32c_tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t state = byte;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0x82f63b78U : 0U);
    tables[0][byte] = state;
  }
  for (std::size_t k = 1; k < tables.size(); ++k)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 255];
    }
  return tables;
}

MILLRACE_INLINE std::uint32_t crc32c_by_tables(std::span<const std::byte> data, std::uint32_t state) noexcept {
  static const crc32c_tables table = make_crc32c_tables();
  const auto at = [&data](std::size_t i) noexcept { return std::to_integer<std::uint32_t>(data[i]); };
  std::size_t i = 0;
  for (; i + 8 <= data.size(); i += 8) {
    const std::uint32_t low = state ^ (at(i) | at(i + 1) << 8 | at(i + 2) << 16 | at(i + 3) << 24);
    state = table[7][low & 255] ^ table[6][(low >> 8) & 255] ^ table[5][(low >> 16) & 255] ^ table[4][low >> 24] ^
            table[3][at(i + 4)] ^ table[2][at(i + 5)] ^ table[1][at(i + 6)] ^ table[0][at(i + 7)];
  }
  for (; i < data.size(); ++i) state = (state >> 8) ^ table[0][(state & 255) ^ at(i)];
  return state;
}

#if defined(__x86_64__)

MILLRACE_INLINE __attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(std::span<const std::byte> data,
                                                                                      std::uint32_t state) noexcept {
  const std::byte* at = data.data();
  const std::byte* const end = at + data.size();
  if (data.size() >= 3 * 4096) at = crc32c_by_lanes<4096>(at, end, state);
  if (data.size() >= 3 * 256) at = crc32c_by_lanes<256>(at, end, state);
  if (data.size() >= 3 * 64) at = crc32c_by_lanes<64>(at, end, state);   // a quarter remains of 2 KiB
  std::uint64_t wide = state;
  std::size_t left = static_cast<std::size_t>(end - at);
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  auto narrow = static_cast<std::uint32_t>(wide);
  for (; left > 0; --left, ++at) narrow = __builtin_ia32_crc32qi(narrow, std::to_integer<unsigned char>(*at));
  return narrow;
}
#endif

}  // namespace detail

MILLRACE_INLINE std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~detail::crc32c_by_instruction(data, ~before);
#endif
  return ~detail::crc32c_by_tables(data, ~before);
}

}}  // namespace millrace
