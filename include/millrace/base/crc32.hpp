// Computes CRC-32, the checksum of gzip and of PNG's chunks.
//
//   std::uint32_t checksum = mr::detail::crc32(data);
//   std::uint32_t same = mr::detail::crc32(second_half, mr::detail::crc32(first_half));   // continues the first
//
// Uses carry-less multiplication if the processor at run time has it; otherwise tables. Both return the same number.
// The polynomial differs from that of base/crc32c.hpp. Threads: pure. Errors: none.
// Source: ISO/IEC 15948, annex D: polynomial 0x04C11DB7 in reflected form, initial value and final xor of all ones.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The tables of a CRC of 32 bits in reflected form: "slicing-by-8" (Kounavis and Berry, IEEE ToC 57(11), 2008).
class crc_tables {
 public:
  explicit crc_tables(std::uint32_t polynomial) noexcept;
  /// Advances an inner state, which is the checksum before its final xor, over `data`.
  std::uint32_t operator()(std::span<const std::byte> data, std::uint32_t state) const noexcept;

 private:
  std::array<std::array<std::uint32_t, 256>, 8> tables_{};   // table k: the effect of a byte with k bytes after it
};

/// Accepts and returns the inner state. Works on every processor.
std::uint32_t crc32_by_tables(std::span<const std::byte> data, std::uint32_t state) noexcept;

/// Returns the checksum of `data`. With `before`, the checksum of earlier bytes, returns that of those bytes and
/// `data`.
std::uint32_t crc32(std::span<const std::byte> data, std::uint32_t before = 0) noexcept;

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/base/impl/crc32.inl>
#endif
