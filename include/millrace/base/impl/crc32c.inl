// Definitions for crc32c.hpp.
#pragma once

#include <millrace/base/crc32c.hpp>

#include <millrace/base/crc32.hpp>
#include <millrace/simd/cpu_features.hpp>
#include <millrace/simd/crc32c_sse42.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::uint32_t crc32c_by_tables(std::span<const std::byte> data, std::uint32_t state) noexcept {
  static const crc_tables tables(0x82f63b78U);
  return tables(data, state);
}

}  // namespace detail

MILLRACE_INLINE std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before) noexcept {
#ifdef __x86_64__
  if (detail::cpu_has_sse42()) return ~detail::crc32c_by_instruction(data, ~before);
#endif
  return ~detail::crc32c_by_tables(data, ~before);
}

}}  // namespace millrace
