// Computes CRC-32, the checksum of PNG's chunks.
//
//   std::uint32_t whole = mr::detail::png_crc(data);
//   std::uint32_t same = mr::detail::png_crc(second_half, mr::detail::png_crc(first_half));   // continues the first
//
// Uses carry-less multiplication if the processor at run time has it; otherwise tables. Both give the same number.
// It is another polynomial than that of base/crc32c.hpp. Threads: pure. Errors: none.
// Source: ISO/IEC 15948, annex D: polynomial 0x04C11DB7 in reflected form, initial value and final xor of all ones. The
// tables are "slicing-by-8" (Kounavis and Berry, IEEE ToC 57(11), 2008). The multiplication is that of Gopal et al.,
// "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009).
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

using png_crc_tables = std::array<std::array<std::uint32_t, 256>, 8>;

/// Table k holds the effect of a byte that is followed by k more bytes.
png_crc_tables make_png_crc_tables() noexcept;

/// Both implementations take and return the inner state: the checksum before its final xor.
std::uint32_t png_crc_by_tables(std::span<const std::byte> data, std::uint32_t state) noexcept;

#if defined(__x86_64__)
using png_crc_lane [[gnu::vector_size(16)]] = long long;

/// Moves the bytes of `lane` to the place of `next`, by powers of x modulo the polynomial, and adds both.
__attribute__((target("pclmul"), always_inline)) inline png_crc_lane fold_png_crc(png_crc_lane lane, png_crc_lane by,
                                                                                  png_crc_lane next) noexcept {
  return __builtin_ia32_pclmulqdq128(lane, by, 0x00) ^ __builtin_ia32_pclmulqdq128(lane, by, 0x11) ^ next;
}

/// Call it only if the processor has PCLMUL.
__attribute__((target("pclmul"))) std::uint32_t png_crc_by_multiplication(std::span<const std::byte> data,
                                                                          std::uint32_t state) noexcept;
#endif

/// Returns the checksum of `data`. With `before`, the checksum of earlier bytes, returns that of those bytes and
/// `data`.
std::uint32_t png_crc(std::span<const std::byte> data, std::uint32_t before = 0) noexcept;

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/png/impl/png_crc.inl>
#endif
