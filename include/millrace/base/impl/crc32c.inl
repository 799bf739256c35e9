// Definitions for crc32c.hpp.
#pragma once

#include <millrace/base/crc32c.hpp>

#include <millrace/simd/cpu_features.hpp>
#include <millrace/simd/crc_lanes.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE crc_tables::crc_tables(std::uint32_t polynomial) noexcept {
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t state = byte;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? polynomial : 0U);
    tables_[0][byte] = state;
  }
  for (std::size_t k = 1; k < tables_.size(); ++k)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables_[k - 1][byte];
      tables_[k][byte] = (before >> 8) ^ tables_[0][before & 255];
    }
}

MILLRACE_INLINE std::uint32_t crc_tables::operator()(std::span<const std::byte> data,
                                                     std::uint32_t state) const noexcept {
  const auto at = [&data](std::size_t i) noexcept { return std::to_integer<std::uint32_t>(data[i]); };
  const auto& t = tables_;
  std::size_t i = 0;
  for (; i + 8 <= data.size(); i += 8) {
    const std::uint32_t low = state ^ (at(i) | at(i + 1) << 8 | at(i + 2) << 16 | at(i + 3) << 24);
    state = t[7][low & 255] ^ t[6][(low >> 8) & 255] ^ t[5][(low >> 16) & 255] ^ t[4][low >> 24] ^ t[3][at(i + 4)] ^
            t[2][at(i + 5)] ^ t[1][at(i + 6)] ^ t[0][at(i + 7)];
  }
  for (; i < data.size(); ++i) state = (state >> 8) ^ t[0][(state & 255) ^ at(i)];
  return state;
}

MILLRACE_INLINE std::uint32_t crc32_by_tables(std::span<const std::byte> data, std::uint32_t state) noexcept {
  static const crc_tables tables(0xedb88320U);
  return tables(data, state);
}

MILLRACE_INLINE std::uint32_t crc32(std::span<const std::byte> data, std::uint32_t before) noexcept {
  std::uint32_t state = ~before;
#ifdef __x86_64__
  if (data.size() >= crc32_least_bytes && cpu_has_pclmul()) {
    std::size_t done = 0;
    state = crc32_by_tables(fold_crc32_lanes(data, state, done), 0);
    data = data.subspan(done);
  }
#elif defined __aarch64__
  if (cpu_has_crc32c()) return ~crc_by_instruction<crc32_instruction>(data, state);
#endif
  return ~crc32_by_tables(data, state);
}

}}}   // namespace millrace::detail

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::uint32_t crc32c_by_tables(std::span<const std::byte> data, std::uint32_t state) noexcept {
  static const crc_tables tables(0x82f63b78U);
  return tables(data, state);
}

}   // namespace detail

MILLRACE_INLINE std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before) noexcept {
#if defined __x86_64__ || defined __aarch64__
  if (detail::cpu_has_crc32c()) return ~detail::crc_by_instruction<detail::crc32c_instruction>(data, ~before);
#endif
  return ~detail::crc32c_by_tables(data, ~before);
}

}}   // namespace millrace
