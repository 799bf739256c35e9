// Definitions for crc32c.hpp.
#pragma once

#include <millrace/base/crc32c.hpp>

#include <millrace/base/crc32.hpp>
#include <millrace/simd/cpu_features.hpp>
#include <millrace/simd/crc_lanes.hpp>

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
