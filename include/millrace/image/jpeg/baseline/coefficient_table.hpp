// Tables for decoding the Huffman codes of a baseline JPEG. They map the next 11 bits of the stream to one or two
// coefficients.
//
//   mr::detail::second_symbols second(ac);                           // symbols that may follow a known symbol
//   mr::detail::build_ac_table(table, ac, second);                   // or build_dc_table(table, dc, second)
//   const mr::detail::coefficient_entry& e = table[window >> 53];    // the stream's next bits, from the top
//   block[order[k + e.run]] = e.value;                               // the first coefficient, if there are two
//   const auto bits = static_cast<int>(window >> e.shift) & ((1 << e.magnitude) - 1);
//   block[order[k + e.advance - 1]] = static_cast<std::int16_t>(bits + e.bias);    // the last coefficient
//
// Both stores are always executed. A store that is not needed writes a zero, or writes to the spare space after the
// block. An entry consumes at most 22 bits. The entry for two symbols is the sum of the entries of the single symbols.
// Threads: pure functions; any thread. Source: ITU-T T.81 F.2.2. The addition of entries is the author's own method.
#pragma once

#include <millrace/image/jpeg/baseline/huffman_code.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The value slow_advance of `advance` means that huffman_code must decode the symbol. Any other value has the bit
/// ends_block if the entry's last symbol ends the block. A loop adds `advance` to the number of the next coefficient (0
/// to 63). The bit beyond_block of the sum is set if the entry is slow or reaches coefficient 63.
enum : unsigned { slow_advance = 192, beyond_block = 64, ends_block = 128 };

struct alignas(8) coefficient_entry {
  std::uint8_t bits;        // number of bits to consume from the stream
  std::uint8_t advance;     // added to the coefficient's number; includes ends_block at the block's end
  std::uint8_t shift;       // right shift that moves the last symbol's magnitude to bit 0 of the window: 64 - bits
  std::uint8_t magnitude;   // number of magnitude bits; must directly follow `shift`, because BEXTR reads both
  std::int16_t bias;        // added to the magnitude bits to get the last coefficient
  std::int8_t value;        // first symbol's coefficient, if the entry decodes two symbols
  std::uint8_t run;         // zeros before the first symbol's coefficient
};

constexpr unsigned coefficient_index_bits = 11;
constexpr std::size_t coefficient_entries = std::size_t{1} << coefficient_index_bits;
using coefficient_table = std::array<coefficient_entry, coefficient_entries>;

/// The maximum sizes, in bits, of magnitudes in 8-bit JPEGs.
enum : unsigned { largest_ac_size = 10, largest_dc_size = 11 };

/// The fields of an entry. The packed word contains the fields in this order, from the lowest byte up.
struct entry_fields {
  unsigned bits = 0, advance = 0, shift = 64, magnitude = 0;
  int bias = 0, value = 0;
  unsigned run = 0;
};
constexpr std::uint64_t packed_entry(const entry_fields& f) noexcept {
  return std::uint64_t{f.bits} | std::uint64_t{f.advance} << 8 | std::uint64_t{f.shift} << 16 |
         std::uint64_t{f.magnitude} << 24 | std::uint64_t{static_cast<std::uint16_t>(f.bias)} << 32 |
         std::uint64_t{static_cast<std::uint8_t>(f.value)} << 48 | std::uint64_t{f.run} << 56;
}
constexpr coefficient_entry unpacked(std::uint64_t word) noexcept {
  return {static_cast<std::uint8_t>(word),       static_cast<std::uint8_t>(word >> 8),
          static_cast<std::uint8_t>(word >> 16), static_cast<std::uint8_t>(word >> 24),
          static_cast<std::int16_t>(word >> 32), static_cast<std::int8_t>(word >> 48),
          static_cast<std::uint8_t>(word >> 56)};
}
constexpr std::uint64_t slow_entry = packed_entry({.advance = slow_advance, .shift = 0});

struct ac_symbol {
  unsigned run, size;
  constexpr explicit ac_symbol(unsigned byte) noexcept : run(byte >> 4), size(byte & 15) {}
  constexpr bool ends() const noexcept { return run == 0 && size == 0; }
  constexpr bool usual() const noexcept { return size == 0 ? run == 0 || run == 15 : size <= largest_ac_size; }
  constexpr unsigned advance() const noexcept { return ends() ? unsigned{ends_block} : run + 1; }
};

/// The entries for an AC symbol in a window of up to 10 bits. of(n)[i] is the entry for a window of n bits with the
/// value i. The entry's `bits` is 0 if the window is too short for the symbol's code word and sign bit, or if the
/// symbol is not usual().
class second_symbols {
 public:
  explicit second_symbols(const huffman_code& ac) {
    words_.fill(packed_entry({}));
    for (unsigned window = 1; window < coefficient_index_bits; ++window) fill(window, ac);
  }
  const std::uint64_t* of(unsigned window) const noexcept { return words_.data() + (std::size_t{1} << window); }

 private:
  void fill(unsigned window, const huffman_code& ac) {
    std::uint64_t* at = words_.data() + (std::size_t{1} << window);
    ac.for_each([&](unsigned length, unsigned byte) {
      if (length > window) return;
      const ac_symbol s(byte);
      std::uint64_t* const end = at + (std::size_t{1} << (window - length));
      const bool fits = s.usual() && (s.size == 0 || length < window);   // the sign bit must fit, too
      if (fits) {
        entry_fields f{
            .bits = length + s.size, .advance = s.advance(), .shift = 64 - length - s.size, .magnitude = s.size};
        std::fill(at, end, packed_entry(f));
        f.bias = 1 - (1 << s.size);
        if (s.size > 0) std::fill(at, at + (end - at) / 2, packed_entry(f));
      }
      at = end;
    });
  }

  std::array<std::uint64_t, coefficient_entries> words_;
};

/// Writes a table from its first entry to its last.
class coefficient_table_writer {
 public:
  coefficient_table_writer(coefficient_table& table, const second_symbols& second)
      : at_(table.data()), second_(second) {}

  /// Writes all entries whose index begins with the next code word. The word has `length` bits. The symbol has `size`
  /// magnitude bits.
  void add(unsigned length, unsigned size, unsigned advance) {
    const unsigned total = length + size;
    const std::size_t count = std::size_t{1} << (coefficient_index_bits - length);
    if (size > 0 && length == coefficient_index_bits) return add_slow(count);
    if ((advance & ends_block) != 0)
      return fill(count, packed_entry({.bits = length, .advance = advance, .shift = 64 - length}));
    if (total > coefficient_index_bits) {   // the index contains the sign, but not all magnitude bits
      entry_fields f{
          .bits = total, .advance = advance, .shift = 64 - total, .magnitude = size, .bias = 1 - (1 << size)};
      fill(count / 2, packed_entry(f));
      f.bias = 0;
      return fill(count / 2, packed_entry(f));
    }
    for (unsigned magnitude = 0; magnitude < 1U << size; ++magnitude)
      add_with_value(total, advance, extended(magnitude, size));
  }
  void add_slow(std::size_t count) { fill(count, slow_entry); }
  void finish(const coefficient_entry* end) { add_slow(static_cast<std::size_t>(end - at_)); }

 private:
  void add_with_value(unsigned total, unsigned advance, int value) {
    const unsigned rest = coefficient_index_bits - total;
    const std::size_t count = std::size_t{1} << rest;
    const std::uint64_t alone = packed_entry({.bits = total, .advance = advance, .shift = 64 - total, .bias = value});
    if (value < -128 || value > 127) return fill(count, alone);
    // The entry for a second symbol has shift = 64 - bits. The bits of the first symbol are subtracted from this shift.
    // The result is never negative.
    const std::uint64_t first = (std::uint64_t{total} | std::uint64_t{advance} << 8) - (std::uint64_t{total} << 16);
    const std::uint64_t followed = first + packed_entry({.shift = 0, .value = value, .run = advance - 1});
    const std::uint64_t* const follower = second_.of(rest);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t has_follower = std::uint64_t{0} - (((follower[i] & 255) + 255) >> 8);
      *at_++ = unpacked((has_follower & (follower[i] + followed)) | (~has_follower & alone));
    }
  }
  void fill(std::size_t count, std::uint64_t word) {
    std::fill_n(at_, count, unpacked(word));
    at_ += count;
  }

  coefficient_entry* at_;
  const second_symbols& second_;
};

/// Builds the table for an AC coefficient and the following AC symbol.
inline void build_ac_table(coefficient_table& table, const huffman_code& ac, const second_symbols& second) {
  coefficient_table_writer write(table, second);
  ac.for_each([&](unsigned length, unsigned byte) {
    if (length > coefficient_index_bits) return;
    const ac_symbol s(byte);
    if (s.usual()) write.add(length, s.size, s.advance());
    else write.add_slow(std::size_t{1} << (coefficient_index_bits - length));
  });
  write.finish(table.data() + table.size());
}

/// Builds the table for a DC difference and the following AC symbol.
inline void build_dc_table(coefficient_table& table, const huffman_code& dc, const second_symbols& second) {
  coefficient_table_writer write(table, second);
  dc.for_each([&](unsigned length, unsigned size) {
    if (length > coefficient_index_bits) return;
    if (size <= largest_dc_size) write.add(length, size, 1);
    else write.add_slow(std::size_t{1} << (coefficient_index_bits - length));
  });
  write.finish(table.data() + table.size());
}

}}}   // namespace millrace::detail
