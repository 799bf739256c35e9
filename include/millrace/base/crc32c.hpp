// Computes CRC-32C (Castagnoli), the checksum of TensorBoard records, of storage formats and of many object stores.
//
//   std::uint32_t checksum = mr::crc32c(data);
//   std::uint32_t same = mr::crc32c(second_half, mr::crc32c(first_half));   // continues where the first call ended
//
// Uses the SSE4.2 instruction if the processor at run time has it; otherwise tables. Both return the same number.
// Threads: pure. Errors: none.
// Source: RFC 3720, section 12.1: polynomial 0x1EDC6F41 in reflected form, initial value and final xor of all ones.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Accepts and returns the inner state: the checksum before its final xor. Works on every processor.
std::uint32_t crc32c_by_tables(std::span<const std::byte> data, std::uint32_t state) noexcept;

}  // namespace detail

/// Returns the checksum of `data`. With `before`, the checksum of earlier bytes, returns that of those bytes and
/// `data`.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before = 0) noexcept;

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/base/impl/crc32c.inl>
#endif
