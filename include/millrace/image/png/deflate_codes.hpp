// Builds the decoding tables of a deflate block from the lengths of its code words.
//
//   mr::detail::deflate_codes codes;                            // 15 KiB, reused for all blocks
//   if (!codes.build(literal_lengths, distance_lengths)) return damaged;
//   std::uint32_t e = codes.literals()[bits & codes.literal_mask];
//
// The index of a table entry is the next `literal_bits` or `distance_bits` bits of the input. The entry describes the
// code word at the start of these bits; see deflate_entry. If the code words of two literals fit into the index, one
// entry can contain both literals. A code word longer than the index continues in a second table.
// Errors: build() returns false if the lengths are not a valid code. As in zlib, a valid code is complete, is empty, or
// has a single code word of one bit. Threads: not thread-safe; one thread at a time. Source: RFC 1951, 3.2.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The bit fields of a table entry. Bits 0 to 7 are the number of coded bits: the input bits that the entry decodes.
/// The coded bits include the extra bits of a length or a distance.
struct deflate_entry {
  static constexpr std::uint32_t coded_bits = 255;

  // Literals: bits 8 to 15 are the first literal. Bits 16 to 23 are the second literal. Bits 24 and 25 are the number
  // of literals. Bits 26 to 29 are the number of coded bits of the first literal alone.
  static constexpr std::uint32_t literal = std::uint32_t{1} << 31;
  static constexpr int literals_at = 8, second_at = 16, count_at = 24, first_bits_at = 26;

  // Lengths and distances: bits 8 to 12 are the number of coded bits without extra bits. Bits 16 to 30 are the length
  // or the distance if all extra bits are 0.
  static constexpr std::uint32_t special = std::uint32_t{1} << 15;
  static constexpr int code_bits_at = 8, base_at = 16;

  // Special entries: if neither second_table nor end_of_block is set, the code word is invalid. If second_table is set,
  // bits 8 to 12 are the number of index bits of the second table. Bits 16 to 30 are the offset of that table.
  static constexpr std::uint32_t second_table = std::uint32_t{1} << 14, end_of_block = std::uint32_t{1} << 13;
};

class deflate_codes {
 public:
  static constexpr unsigned literal_bits = 11, distance_bits = 9;
  static constexpr std::uint32_t literal_mask = (1U << literal_bits) - 1, distance_mask = (1U << distance_bits) - 1;
  static constexpr std::size_t literal_symbols = 288, distance_symbols = 32, length_symbols = 19;
  static constexpr unsigned longest_word = 15;

  /// Builds the tables of a dynamic block. Returns false if the lengths are not a valid code.
  bool build(std::span<const std::uint8_t> literal_lengths, std::span<const std::uint8_t> distance_lengths) noexcept;
  /// Builds the tables of blocks with fixed codes.
  void build_fixed() noexcept;

  const std::uint32_t* literals() const noexcept { return literals_; }
  const std::uint32_t* distances() const noexcept { return distances_; }

 private:
  // These sizes suffice: a second table of 2^k entries contains at least k + 1 code words, and k is at most 4 for
  // literals and 6 for distances. Therefore each code word in a second table needs at most 16 / 5 or 64 / 7 entries on
  // average.
  static constexpr std::size_t literal_entries = (std::size_t{1} << literal_bits) + literal_symbols * 16 / 5 + 16;
  static constexpr std::size_t distance_entries = (std::size_t{1} << distance_bits) + distance_symbols * 64 / 7 + 64;

  static bool literals_are_half(std::span<const std::uint8_t> lengths) noexcept;
  void pair_literals() noexcept;

  bool fixed_ = false;   // whether the tables contain the fixed codes
  std::uint32_t literals_[literal_entries], distances_[distance_entries];
};

/// The Huffman code in which a dynamic block stores the lengths of its code words. Bits 0 to 7 of an entry are the
/// number of coded bits. Bits 16 to 20 are the symbol.
class deflate_length_code {
 public:
  static constexpr unsigned index_bits = 7;

  bool build(std::span<const std::uint8_t> lengths) noexcept;
  std::uint32_t entry(std::uint64_t bits) const noexcept { return entries_[bits & ((1U << index_bits) - 1)]; }

 private:
  std::uint32_t entries_[std::size_t{1} << index_bits];
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/png/impl/deflate_codes.inl>
#endif
