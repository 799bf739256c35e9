// Definitions for deflate_codes.hpp.
#pragma once

#include <millrace/image/png/deflate_codes.hpp>

#include <array>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Builds a decoding table from the symbols' entries (without code words) and the lengths of their code words.
class deflate_table_builder {
 public:
  deflate_table_builder(std::span<const std::uint8_t> lengths, const std::uint32_t* symbols) noexcept
      : symbols_(symbols) {
    for (const std::uint8_t length : lengths) ++counts_[length];
    std::uint16_t begin[deflate_codes::longest_word + 2] = {};
    for (std::size_t length = 1; length <= deflate_codes::longest_word; ++length)
      begin[length + 1] = static_cast<std::uint16_t>(begin[length] + counts_[length]);
    used_ = begin[deflate_codes::longest_word + 1];
    for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol)
      if (lengths[symbol] != 0) sorted_[begin[lengths[symbol]]++] = static_cast<std::uint16_t>(symbol);
  }

  /// Returns the unused code space in words of 15 bits; negative if the code space is exceeded.
  int space_left() const noexcept {
    int left = 1;
    for (std::size_t length = 1; length <= deflate_codes::longest_word; ++length)
      if ((left = 2 * left - counts_[length]) < 0) return left;
    return left;
  }
  /// Returns whether the code has no word, or one word of one bit.
  bool single() const noexcept { return used_ == counts_[1] && used_ <= 1; }

  /// Fills the table of a complete code.
  void fill(std::uint32_t* table, unsigned index_bits) noexcept {
    table_ = table;
    index_bits_ = index_bits;
    unsigned length = 1;
    while (counts_[length] == 0) ++length;
    std::size_t size = std::size_t{1} << length;
    for (;;) {
      for (unsigned left = counts_[length]; left > 0; --left) {
        table[word_] = entry_of(sorted_[next_++], length);
        if (!advance(length)) return double_up(size, length);
      }
      do {
        if (++length > index_bits) return fill_second_tables(length);
        double_up(size, length - 1, length);
        size *= 2;
      } while (counts_[length] == 0);
    }
  }

  /// Fills the table of an incomplete code. The unused half, or the entire table, is invalid.
  void fill_single(std::uint32_t* table, unsigned index_bits) const noexcept {
    for (std::size_t i = 0; i < std::size_t{1} << index_bits; ++i)
      table[i] = used_ == 1 && i % 2 == 0 ? entry_of(sorted_[0], 1) : deflate_entry::special + length_fields(1, 0);
  }

 private:
  /// Returns the entry's two fields for a code word of this length.
  static std::uint32_t length_fields(std::uint32_t length, std::uint32_t symbol) noexcept {
    const bool literal = (symbol & deflate_entry::literal) != 0;
    return length + (length << (literal ? deflate_entry::first_bits_at : deflate_entry::code_bits_at));
  }
  std::uint32_t entry_of(std::size_t symbol, std::uint32_t length) const noexcept {
    return symbols_[symbol] + length_fields(length, symbols_[symbol]);
  }

  /// Advances to the next code word, whose first bit is the lowest one here. Returns false after the last word.
  bool advance(unsigned length) noexcept {
    const std::uint32_t zeros = word_ ^ ((1U << length) - 1);
    if (zeros == 0) return false;
    const std::uint32_t highest = std::uint32_t{1} << (31 - __builtin_clz(zeros));
    word_ = (word_ & (highest - 1)) | highest;
    return true;
  }

  void double_up(std::size_t size, unsigned from_bits, unsigned to_bits) const noexcept {
    for (; from_bits < to_bits; ++from_bits, size *= 2) std::memcpy(table_ + size, table_, size * sizeof *table_);
  }
  void double_up(std::size_t size, unsigned from_bits) const noexcept { double_up(size, from_bits, index_bits_); }

  void fill_second_tables(unsigned length) noexcept {
    const std::uint32_t mask = (1U << index_bits_) - 1;
    std::uint32_t prefix = ~std::uint32_t{0};
    std::size_t begin = 0, end = std::size_t{1} << index_bits_;
    for (;; ++length)
      for (unsigned left = counts_[length]; left > 0; --left) {
        if ((word_ & mask) != prefix) {
          prefix = word_ & mask;
          begin = end;
          const unsigned bits = second_index_bits(length, left);
          end += std::size_t{1} << bits;
          table_[prefix] = deflate_entry::special | deflate_entry::second_table | index_bits_ |
                           bits << deflate_entry::code_bits_at |
                           static_cast<std::uint32_t>(begin) << deflate_entry::base_at;
        }
        const std::uint32_t entry = entry_of(sorted_[next_++], length);
        for (std::size_t at = begin + (word_ >> index_bits_); at < end; at += std::size_t{1} << (length - index_bits_))
          table_[at] = entry;
        if (!advance(length)) return;
      }
  }

  /// Returns the index bits of a second table whose first word has this length, if `left` words of it remain.
  unsigned second_index_bits(unsigned length, unsigned left) const noexcept {
    unsigned bits = length - index_bits_;
    for (std::uint32_t space = left; space < 1U << bits;) space = 2 * space + counts_[index_bits_ + ++bits];
    return bits;
  }

  const std::uint32_t* symbols_;
  std::uint32_t* table_ = nullptr;
  unsigned index_bits_ = 0;
  std::uint32_t word_ = 0;
  std::size_t next_ = 0, used_ = 0;
  std::uint16_t counts_[deflate_codes::longest_word + 1] = {};
  std::uint16_t sorted_[deflate_codes::literal_symbols];
};

/// The entries of the symbols: literals and lengths, and distances.
struct deflate_symbols {
  std::array<std::uint32_t, deflate_codes::literal_symbols> literals{};
  std::array<std::uint32_t, deflate_codes::distance_symbols> distances{};
  std::array<std::uint32_t, deflate_codes::length_symbols> lengths{};

  constexpr deflate_symbols() noexcept {
    for (std::uint32_t i = 0; i < 256; ++i)
      literals[i] = deflate_entry::literal | i << deflate_entry::literals_at | 1U << deflate_entry::count_at;
    literals[256] = deflate_entry::special | deflate_entry::end_of_block;
    for (std::uint32_t i = 0, base = 3; i < 28; ++i) {
      const std::uint32_t extra_bits = i < 8 ? 0 : i / 4 - 1;
      literals[257 + i] = base << deflate_entry::base_at | extra_bits;
      base += 1U << extra_bits;
    }
    literals[285] = 258U << deflate_entry::base_at;
    literals[286] = literals[287] = deflate_entry::special;
    for (std::uint32_t i = 0, base = 1; i < 30; ++i) {
      const std::uint32_t extra_bits = i < 4 ? 0 : i / 2 - 1;
      distances[i] = base << deflate_entry::base_at | extra_bits;
      base += 1U << extra_bits;
    }
    distances[30] = distances[31] = deflate_entry::special;
    for (std::uint32_t i = 0; i < lengths.size(); ++i) lengths[i] = i << deflate_entry::base_at;
  }
};
inline constexpr deflate_symbols all_deflate_symbols;

MILLRACE_INLINE bool deflate_codes::build(std::span<const std::uint8_t> literal_lengths,
                                          std::span<const std::uint8_t> distance_lengths) noexcept {
  fixed_ = false;
  deflate_table_builder literals(literal_lengths, all_deflate_symbols.literals.data());
  deflate_table_builder distances(distance_lengths, all_deflate_symbols.distances.data());
  const int left[] = {literals.space_left(), distances.space_left()};
  if (left[0] < 0 || left[1] < 0 || (left[0] > 0 && !literals.single()) || (left[1] > 0 && !distances.single()))
    return false;
  left[0] == 0 ? literals.fill(literals_, literal_bits) : literals.fill_single(literals_, literal_bits);
  left[1] == 0 ? distances.fill(distances_, distance_bits) : distances.fill_single(distances_, distance_bits);
  if (literals_are_half(literal_lengths)) pair_literals();
  return true;
}

/// Decides by the lengths of the code words. If other symbols are as frequent, few literals form pairs, and the table
/// of pairs costs more than it saves.
MILLRACE_INLINE bool deflate_codes::literals_are_half(std::span<const std::uint8_t> lengths) noexcept {
  std::uint32_t share = 0;
  for (std::size_t i = 0; i < 256; ++i) share += lengths[i] > 0 ? 1U << longest_word >> lengths[i] : 0;
  return share >= 1U << (longest_word - 1);
}

MILLRACE_INLINE void deflate_codes::build_fixed() noexcept {
  if (fixed_) return;
  std::uint8_t literals[literal_symbols], distances[distance_symbols];
  std::memset(literals, 8, 144);
  std::memset(literals + 144, 9, 112);
  std::memset(literals + 256, 7, 24);
  std::memset(literals + 280, 8, 8);
  std::memset(distances, 5, sizeof distances);
  build(literals, distances);
  fixed_ = true;
}

/// Iterates from the end, so that the entry for the bits after a first literal is still a single one. Branchless,
/// because branches would be hard to predict.
MILLRACE_INLINE void deflate_codes::pair_literals() noexcept {
  constexpr std::uint32_t byte = 255;
  for (std::size_t i = std::size_t{1} << literal_bits; i-- > 0;) {
    const std::uint32_t first = literals_[i], second = literals_[i >> (first & 15)];
    const std::uint32_t bits = (first & deflate_entry::coded_bits) + (second & deflate_entry::coded_bits);
    const std::uint32_t pair = (first & ~deflate_entry::coded_bits) + bits + (1U << deflate_entry::count_at) +
                               ((second >> deflate_entry::literals_at & byte) << deflate_entry::second_at);
    const std::uint32_t fits = (first & second) >> 31 & (bits - literal_bits - 1) >> 31;
    literals_[i] = first ^ ((first ^ pair) & (0 - fits));
  }
}

MILLRACE_INLINE bool deflate_length_code::build(std::span<const std::uint8_t> lengths) noexcept {
  deflate_table_builder builder(lengths, all_deflate_symbols.lengths.data());
  if (builder.space_left() != 0) return false;
  builder.fill(entries_, index_bits);
  return true;
}

}}}   // namespace millrace::detail
