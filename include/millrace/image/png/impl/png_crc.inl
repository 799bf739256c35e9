// Defines what png_crc.hpp declares.
#pragma once

#include <millrace/image/png/png_crc.hpp>

#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE png_crc_tables make_png_crc_tables() noexcept {
  png_crc_tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t state = byte;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0xedb88320U : 0U);
    tables[0][byte] = state;
  }
  for (std::size_t k = 1; k < tables.size(); ++k)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 255];
    }
  return tables;
}

MILLRACE_INLINE std::uint32_t png_crc_by_tables(std::span<const std::byte> data, std::uint32_t state) noexcept {
  static const png_crc_tables table = make_png_crc_tables();
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
MILLRACE_INLINE __attribute__((target("pclmul"))) std::uint32_t png_crc_by_multiplication(
    std::span<const std::byte> data, std::uint32_t state) noexcept {
  constexpr std::size_t lanes = 4, lane_bytes = sizeof(png_crc_lane);
  if (data.size() < lanes * lane_bytes) return png_crc_by_tables(data, state);
  const png_crc_lane by_four{0x1'5444'2bd4, 0x1'c6e4'1596}, by_one{0x1'7519'97d0, 0x0'ccaa'009e};
  const auto load = [](const std::byte* from) noexcept {
    png_crc_lane value;
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  const std::byte* at = data.data();
  const std::byte* const end = at + data.size();
  png_crc_lane lane[lanes];
  for (std::size_t k = 0; k < lanes; ++k) lane[k] = load(at + k * lane_bytes);
  lane[0] ^= png_crc_lane{static_cast<long long>(state), 0};
  at += lanes * lane_bytes;
  for (; static_cast<std::size_t>(end - at) >= lanes * lane_bytes; at += lanes * lane_bytes)
    for (std::size_t k = 0; k < lanes; ++k) lane[k] = fold_png_crc(lane[k], by_four, load(at + k * lane_bytes));
  png_crc_lane all = lane[0];
  for (std::size_t k = 1; k < lanes; ++k) all = fold_png_crc(all, by_one, lane[k]);
  for (; static_cast<std::size_t>(end - at) >= lane_bytes; at += lane_bytes) all = fold_png_crc(all, by_one, load(at));
  // The last lane stands for all bytes before it: it has their remainder, and so their checksum.
  std::byte rest[lane_bytes];
  std::memcpy(rest, &all, sizeof rest);
  return png_crc_by_tables({at, end}, png_crc_by_tables(rest, 0));
}
#endif

MILLRACE_INLINE std::uint32_t png_crc(std::span<const std::byte> data, std::uint32_t before) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("pclmul") != 0) return ~png_crc_by_multiplication(data, ~before);
#endif
  return ~png_crc_by_tables(data, ~before);
}

}}}  // namespace millrace::detail
