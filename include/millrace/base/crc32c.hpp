// Computes CRC-32C (Castagnoli), the checksum of TensorBoard's records, of storage formats and of many object stores.
//
//   std::uint32_t whole = mr::crc32c(data);
//   std::uint32_t same = mr::crc32c(second_half, mr::crc32c(first_half));   // continues where the first call ended
//
// Uses the SSE4.2 instruction if the processor at run time has it, in three interleaved streams; otherwise tables. Both
// give the same number. Threads: pure. Errors: none.
// Source: RFC 3720, section 12.1: polynomial 0x1EDC6F41 in reflected form, initial value and final xor of all ones.
// The tables are "slicing-by-8" (Kounavis and Berry, IEEE ToC 57(11), 2008).
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

using crc32c_tables = std::array<std::array<std::uint32_t, 256>, 8>;

/// Table k holds the effect of a byte that is followed by k more bytes. Not constexpr: its evaluation would be a
/// twentieth of the cost of including the library.
crc32c_tables make_crc32c_tables() noexcept;

/// Both implementations take and return the inner state: the checksum before its final xor.
std::uint32_t crc32c_by_tables(std::span<const std::byte> data, std::uint32_t state) noexcept;

#if defined(__x86_64__)
/// Advances a state over `zeros_bytes` zeros, by tables. This works because the state is a sum (xor) of independent
/// bits.
template <std::size_t zeros_bytes>
class crc32c_zeros {
 public:
  crc32c_zeros() noexcept {
    static constexpr std::array<std::byte, zeros_bytes> zeros{};
    std::array<std::uint32_t, 32> of_bit{};
    for (std::size_t bit = 0; bit < 32; ++bit) of_bit[bit] = crc32c_by_tables(zeros, std::uint32_t{1} << bit);
    for (std::size_t part = 0; part < 4; ++part)
      for (std::size_t byte = 0; byte < 256; ++byte)
        for (std::size_t bit = 0; bit < 8; ++bit)
          if ((byte >> bit & 1) != 0) table_[part][byte] ^= of_bit[8 * part + bit];
  }
  std::uint32_t operator()(std::uint32_t state) const noexcept {
    return table_[0][state & 255] ^ table_[1][(state >> 8) & 255] ^ table_[2][(state >> 16) & 255] ^
           table_[3][state >> 24];
  }

 private:
  std::array<std::array<std::uint32_t, 256>, 4> table_{};
};

/// Computes three lanes in parallel: the instruction takes three cycles, but one can begin in each cycle. Joins the
/// lanes by advancing each state over as many zeros as there are bytes after its lane.
template <std::size_t lane_bytes>
__attribute__((target("sse4.2"))) inline const std::byte* crc32c_by_lanes(const std::byte* at, const std::byte* end,
                                                                          std::uint32_t& state) noexcept {
  static const crc32c_zeros<lane_bytes> zeros;
  const auto word = [](const std::byte* from) noexcept {
    std::uint64_t value;
    std::memcpy(&value, from, 8);
    return value;
  };
  while (static_cast<std::size_t>(end - at) >= 3 * lane_bytes) {
    std::uint64_t first = state, second = 0, third = 0;
    for (const std::byte* const stop = at + lane_bytes; at != stop; at += 8) {
      first = __builtin_ia32_crc32di(first, word(at));
      second = __builtin_ia32_crc32di(second, word(at + lane_bytes));
      third = __builtin_ia32_crc32di(third, word(at + 2 * lane_bytes));
    }
    state = zeros(static_cast<std::uint32_t>(first)) ^ static_cast<std::uint32_t>(second);
    state = zeros(state) ^ static_cast<std::uint32_t>(third);
    at += 2 * lane_bytes;
  }
  return at;
}

/// Compiled for SSE4.2 regardless of the program's flags. Call it only if the processor has SSE4.2.
__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(std::span<const std::byte> data,
                                                                      std::uint32_t state) noexcept;
#endif

}  // namespace detail

/// Returns the checksum of `data`. With `before`, the checksum of earlier bytes, returns that of those bytes and
/// `data`.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before = 0) noexcept;

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/base/impl/crc32c.inl>
#endif
