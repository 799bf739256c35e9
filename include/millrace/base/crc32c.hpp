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
inline crc32c_tables make_crc32c_tables() noexcept {
  crc32c_tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t state = byte;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0x82f63b78U : 0U);
    tables[0][byte] = state;
  }
  for (std::size_t k = 1; k < tables.size(); ++k)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 255];
    }
  return tables;
}

/// Both implementations take and return the inner state: the checksum before its final xor.
inline std::uint32_t crc32c_by_tables(std::span<const std::byte> data, std::uint32_t state) noexcept {
  static const crc32c_tables table = make_crc32c_tables();
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
__attribute__((target("sse4.2"))) inline std::uint32_t crc32c_by_instruction(std::span<const std::byte> data,
                                                                             std::uint32_t state) noexcept {
  const std::byte* at = data.data();
  const std::byte* const end = at + data.size();
  if (data.size() >= 3 * 4096) at = crc32c_by_lanes<4096>(at, end, state);
  if (data.size() >= 3 * 256) at = crc32c_by_lanes<256>(at, end, state);
  if (data.size() >= 3 * 64) at = crc32c_by_lanes<64>(at, end, state);   // a quarter remains of 2 KiB
  std::uint64_t wide = state;
  std::size_t left = static_cast<std::size_t>(end - at);
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  auto narrow = static_cast<std::uint32_t>(wide);
  for (; left > 0; --left, ++at) narrow = __builtin_ia32_crc32qi(narrow, std::to_integer<unsigned char>(*at));
  return narrow;
}
#endif

}  // namespace detail

/// Returns the checksum of `data`. With `before`, the checksum of earlier bytes, returns that of those bytes and
/// `data`.
inline std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before = 0) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~detail::crc32c_by_instruction(data, ~before);
#endif
  return ~detail::crc32c_by_tables(data, ~before);
}

}}  // namespace millrace
