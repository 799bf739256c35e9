// Computes CRC-32C (Castagnoli), the checksum of TensorBoard records, of storage formats and of many object stores.
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

#include <cstddef>
#include <cstdint>
#include <span>

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
