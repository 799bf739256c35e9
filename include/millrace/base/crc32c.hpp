// Computes CRC-32C (Castagnoli), the checksum of TensorBoard records, of storage formats and of many object stores.
// Also computes CRC-32, for private parts of this library.
//
//   std::uint32_t checksum = mr::crc32c(data);
//   std::uint32_t same = mr::crc32c(second_half, mr::crc32c(first_half));   // continues where the first call ended
//
// Uses the CRC instruction of SSE4.2 or Armv8 if the processor supports it, and tables otherwise. Both methods return
// the same number.
// Threads: the functions are pure; any thread may call them. Errors: none.
// Source: RFC 3720, section 12.1: polynomial 0x1EDC6F41 in reflected form, initial value and final xor of all ones.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Computes CRC-32, the checksum of gzip and of PNG's chunks.
//
//   std::uint32_t checksum = mr::detail::crc32(data);
//   std::uint32_t same = mr::detail::crc32(second_half, mr::detail::crc32(first_half));   // continues the first call
//
// Uses carry-less multiplication (x86-64) or the CRC instruction (Armv8) if the processor supports it, and tables
// otherwise. All methods return the same number. crc32c() uses another polynomial.
// Threads: the functions are pure; any thread may call them. Errors: none.
// Source: ISO/IEC 15948, annex D. The polynomial is 0x04C11DB7 in reflected form. All bits of the initial value and of
// the final xor are 1.

/// The tables of a 32-bit CRC in reflected form, for "slicing-by-8" (Kounavis and Berry, IEEE ToC 57(11), 2008).
class crc_tables {
 public:
  explicit crc_tables(std::uint32_t polynomial) noexcept;
  /// Processes `data`, beginning with an inner state, and returns the new state. The inner state is the checksum before
  /// the final xor.
  std::uint32_t operator()(std::span<const std::byte> data, std::uint32_t state) const noexcept;

 private:
  std::array<std::array<std::uint32_t, 256>, 8> tables_{};   // table k: effect of a byte with k bytes after it
};

/// Computes CRC-32 by tables, on every processor. `state` and the result are inner states.
std::uint32_t crc32_by_tables(std::span<const std::byte> data, std::uint32_t state) noexcept;

/// Returns the checksum of `data`. If `before` is the checksum of preceding bytes, returns the checksum of these bytes
/// and `data` together.
std::uint32_t crc32(std::span<const std::byte> data, std::uint32_t before = 0) noexcept;

}}}   // namespace millrace::detail

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Computes CRC-32C by tables, on every processor. `state` and the result are inner states, that is, checksums before
/// the final xor.
std::uint32_t crc32c_by_tables(std::span<const std::byte> data, std::uint32_t state) noexcept;

}   // namespace detail

/// Returns the checksum of `data`. If `before` is the checksum of preceding bytes, returns the checksum of these bytes
/// and `data` together.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before = 0) noexcept;

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/base/impl/crc32c.inl>
#endif
