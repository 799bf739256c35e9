// Decodes the AC scans of a progressive JPEG.
//
//   mr::detail::band_stream s{.table = &table, .first = 1, .last = 63, .low = 2, .bit = first_bit, .end_bit = end};
//   const mr::detail::block_run run{.sets = sets, .pairs = pairs, .first = 0, .count = 63};
//   if (!decode_first<mr::detail::portable_coefficient_sets, true>(s, run)) return damaged;
//
// An AC scan contains bits of a band. A band is a range of a block's coefficients that does not include the first
// coefficient (DC). The decoder stores the coefficients of blocks within the requested region. For every block, also
// outside the region, the decoder stores the set of nonzero coefficients (coefficient_set), because refinement scans
// require this set. A refinement scan contains one correction bit for each coefficient that is already nonzero. Invalid
// bits cannot corrupt memory. After each block, the decoder checks that the position is not beyond `end_bit`.
// Threads: any; calls share no state. Source: ITU-T T.81 G.1.2.2 and G.1.2.3. The use of sets instead of loops is the
// author's own method.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/jpeg/baseline/block_stream.hpp>
#include <millrace/image/jpeg/baseline/coefficient_table.hpp>
#include <millrace/image/jpeg/baseline/huffman_code.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Represents a set of a block's coefficients as one word. Defines the operations on such sets that refinement scans
// use.
//
//   using sets = mr::detail::portable_coefficient_sets;   // or deposit_coefficient_sets, with the same results
//   mr::detail::coefficient_set zeros = mr::detail::band_of(1, 63);     // coefficients 1 to 63
//   auto place = sets::nth_last(zeros, 58);                             // the set of coefficient 5 alone
//   unsigned k = mr::detail::first_of(place);                           // 5
//   auto third = sets::spread(0b10, mr::detail::before(zeros, place));  // the set of coefficient 3 alone
//
// Bit 63 - k represents coefficient k, so that coefficients have the same order as bits of the stream.
// Threads: pure functions; any thread.

using coefficient_set = std::uint64_t;

constexpr coefficient_set set_of(unsigned k) noexcept { return coefficient_set{1} << 63 >> k; }
/// Returns the number of the first coefficient; 64 for an empty set.
MILLRACE_ALWAYS_INLINE inline unsigned first_of(coefficient_set set) noexcept {
  return static_cast<unsigned>(std::countl_zero(set));
}
MILLRACE_ALWAYS_INLINE inline unsigned size_of(coefficient_set set) noexcept {
  return static_cast<unsigned>(std::popcount(set));
}
/// Returns the members of `set` before the coefficient in `place`, which must contain exactly one coefficient.
constexpr coefficient_set before(coefficient_set set, coefficient_set place) noexcept {
  return set & (coefficient_set{0} - (place << 1));
}
/// Returns the coefficients from `first` to `last`.
constexpr coefficient_set band_of(unsigned first, unsigned last) noexcept {
  return ~coefficient_set{0} >> first & ~coefficient_set{0} << (63 - last);
}

struct portable_coefficient_sets {
  /// Returns the set that contains only the n-th member from the end, counted from 0. The set must have more than n
  /// members.
  MILLRACE_ALWAYS_INLINE static coefficient_set nth_last(coefficient_set set, unsigned n) noexcept {
    for (; n > 0; --n) set &= set - 1;
    return set & (coefficient_set{0} - set);
  }
  /// Returns the members whose bit in `bits` is 1. `bits` has one bit per member; the lowest bit belongs to the last
  /// member.
  MILLRACE_ALWAYS_INLINE static coefficient_set spread(std::uint64_t bits, coefficient_set set) noexcept {
    coefficient_set result = 0;
    for (; set != 0; set &= set - 1, bits >>= 1)
      if ((bits & 1) != 0) result |= set & (coefficient_set{0} - set);
    return result;
  }
};

#if defined __x86_64__ || defined __aarch64__
/// The functions of portable_coefficient_sets, implemented with an instruction that deposits bits: PDEP of BMI2, or
/// BDEP of SVE2.
struct deposit_coefficient_sets {
  MILLRACE_ALWAYS_INLINE static coefficient_set nth_last(coefficient_set set, unsigned n) noexcept {
    return deposit(std::uint64_t{1} << n, set);
  }
  MILLRACE_ALWAYS_INLINE static coefficient_set spread(std::uint64_t bits, coefficient_set set) noexcept {
    return deposit(bits, set);
  }

 private:
  /// Uses inline assembly, because an intrinsic would require a compiler flag. BDEP exists only for vectors.
  MILLRACE_ALWAYS_INLINE static std::uint64_t deposit(std::uint64_t bits, std::uint64_t to) noexcept {
    std::uint64_t result;
#ifdef __x86_64__
    asm("pdep %2, %1, %0" : "=r"(result) : "r"(bits), "r"(to));
#else
    asm(".arch_extension sve2-bitperm\n\tfmov d0, %1\n\tfmov d1, %2\n\tbdep z0.d, z0.d, z1.d\n\tfmov %0, d0"
        : "=r"(result)
        : "r"(bits), "r"(to)
        : "v0", "v1");
#endif
    return result;
  }
};
#endif

// Tables that map the next 10 bits of a progressive scan to one symbol and the sign of its coefficient.
//
//   mr::detail::band_table table;
//   if (!table.build(scan.ac, {.kind = mr::detail::band_kind::first_ac, .low = scan.low})) return tables;
//   mr::detail::band_entry e = table[window];             // the stream's next bits, most significant bit first
//   if (e.kind == mr::detail::band_entry::long_word) e = table.find(window);
//   k += e.run;
//   int value = static_cast<int>(window >> (e.shift & 63) & ((1 << e.magnitude) - 1)) + e.bias;
//
// An entry consumes at most 26 bits of an AC scan, or 31 bits of a DC scan.
// Source: ITU-T T.81 F.1.2.1 and G.1.2.

enum class band_kind : std::uint8_t { dc, first_ac, refining_ac };

struct alignas(8) band_entry {
  /// The kind of an entry. `zeros`: a run of zeros; `coefficient`: a run of zeros and a coefficient; `end_of_band`: the
  /// end of this block and of a run of following blocks; `long_word`: a word that, with its sign bit, is longer than
  /// the index; `invalid`: an invalid word or an impossible coefficient.
  enum : std::uint8_t { zeros = 0, coefficient = 1, end_of_band = 2, long_word = 3, invalid = 4 };

  std::uint8_t bits;        // bits to consume from the stream; for end_of_band, only the bits of the code word
  std::uint8_t run;         // zeros before the coefficient; for end_of_band, the number of bits of the block count
  std::uint8_t shift;       // shift of the window to the magnitude: 64 - bits
  std::uint8_t magnitude;   // size of the magnitude in bits
  std::int16_t bias;        // added to the magnitude bits
  std::uint8_t kind;
};

class band_table {
 public:
  static constexpr unsigned index_bits = 10;

  struct use {
    band_kind kind;
    unsigned low;   // position of the lowest coefficient bit that the scan contains
  };

  /// Builds the table. Returns false if the code is invalid.
  bool build(code_bytes bytes, use usage) {
    use_ = usage;
    if (!code_.assign(bytes)) return false;
    bool possible = true;
    band_entry* at = entries_.data();
    code_.for_each([&](unsigned length, unsigned byte) {
      possible = possible && (use_.kind != band_kind::dc || byte <= largest_dc_symbol);
      const band_entry e = entry_of(length, byte, false);
      if (length > index_bits || (length == index_bits && e.magnitude > 0)) {
        if (length > index_bits) return;
        *at++ = rare(band_entry::long_word);
        return;
      }
      const std::size_t count = std::size_t{1} << (index_bits - length);
      std::fill_n(at, count, entry_of(length, byte, true));
      if (e.magnitude > 0) std::fill_n(at, count / 2, e);
      at += count;
    });
    std::fill(at, entries_.data() + entries_.size(), rare(band_entry::long_word));
    return possible;
  }

  const band_entry& operator[](std::uint64_t window) const noexcept { return entries_[window >> (64 - index_bits)]; }

  /// Decodes a word of any length.
  [[gnu::noinline]] band_entry find(std::uint64_t window) const noexcept {
    const auto [length, byte] = code_.find(window);
    if (length == 0) return rare(band_entry::invalid);
    return entry_of(length, byte, (window << length >> 63) != 0);
  }

 private:
  static constexpr unsigned largest_dc_symbol = 15;   // libjpeg reports an error for larger symbols

  static constexpr band_entry rare(std::uint8_t kind) noexcept { return {1, 0, 63, 0, 0, kind}; }

  /// `positive` is the first magnitude bit: 1 for a positive value, 0 for a negative value.
  band_entry entry_of(unsigned length, unsigned byte, bool positive) const noexcept {
    if (use_.kind == band_kind::dc && byte > largest_dc_symbol) return rare(band_entry::invalid);
    const unsigned run = use_.kind == band_kind::dc ? 0 : byte >> 4;
    const unsigned size = use_.kind == band_kind::dc ? byte : byte & 15;
    const auto entry = [&](unsigned zeros, unsigned magnitude, int bias, std::uint8_t kind) {
      return band_entry{static_cast<std::uint8_t>(length + magnitude),
                        static_cast<std::uint8_t>(zeros),
                        static_cast<std::uint8_t>(64 - length - magnitude),
                        static_cast<std::uint8_t>(magnitude),
                        static_cast<std::int16_t>(bias),
                        kind};
    };
    const int below = positive ? 0 : 1 - (1 << size);
    if (use_.kind == band_kind::dc) return entry(0, size, size == 0 ? 0 : below, band_entry::coefficient);
    if (size == 0) return entry(run, 0, 0, run == 15 ? band_entry::zeros : band_entry::end_of_band);
    if (size + use_.low > largest_ac_size || (use_.kind == band_kind::refining_ac && size != 1))
      return rare(band_entry::invalid);
    return entry(run, size, below, band_entry::coefficient);
  }

  std::array<band_entry, std::size_t{1} << index_bits> entries_;
  huffman_code code_;
  use use_{};
};

/// Adjacent blocks in one row of blocks.
struct block_run {
  coefficient_set* sets = nullptr;   // the nonzero coefficients of each block
  std::int16_t* pairs = nullptr;     // the row's coefficients, in pairs of blocks; null if they are not stored
  std::size_t first = 0;             // index of the first block in `pairs`
  std::size_t count = 0;

  std::int16_t* block(std::size_t i) const noexcept {
    return pairs + (first + i) / 2 * pair_coefficients + (first + i) % 2 * right_block;
  }
};

struct band_stream {
  const band_table* table = nullptr;
  unsigned first = 1, last = 63, low = 0;
  std::uintptr_t bit = 0, end_bit = 0;   // positions of the next symbol and of the data's end
  std::uint32_t blocks_passed = 0;       // number of following blocks without a symbol

  /// Returns the number of blocks without further symbols: the current block and its successors.
  MILLRACE_ALWAYS_INLINE static std::uint32_t ended_blocks(std::uint64_t after_word, unsigned run) noexcept {
    return (std::uint32_t{1} << run) + static_cast<std::uint32_t>(after_word >> 1 >> (63 - run));
  }
};

MILLRACE_ALWAYS_INLINE inline int value_of(std::uint64_t window, const band_entry& e) noexcept {
  return static_cast<int>(window >> (e.shift & 63) & ((std::uint64_t{1} << (e.magnitude & 63)) - 1)) + e.bias;
}

/// Decodes the first bits of a band's coefficients. Returns false if the data is damaged.
template <class, bool store>
MILLRACE_ALWAYS_INLINE inline bool decode_first(band_stream& stream, const block_run& run) noexcept {
  const band_table& table = *stream.table;
  const unsigned first = stream.first, last = stream.last, low = stream.low;
  std::uintptr_t bit = stream.bit;
  std::uint64_t window = bit_window_at(bit);
  for (std::size_t i = 0; i < run.count; ++i) {
    if (stream.blocks_passed > 0) {
      const std::size_t passed = std::min<std::size_t>(stream.blocks_passed, run.count - i);
      stream.blocks_passed -= static_cast<std::uint32_t>(passed);
      i += passed - 1;
      continue;
    }
    std::int16_t* const block = store ? run.block(i) : nullptr;
    coefficient_set nonzero = 0;
    unsigned k = first;
    do {
      const band_entry* e = &table[window];
      window = bit_window_at(bit);   // the lookup above does not wait for this load
      band_entry rare;
      if (__builtin_expect(e->kind > band_entry::coefficient, 0)) {
        if (e->kind == band_entry::long_word) {
          rare = table.find(window);
          e = &rare;
        }
        if (e->kind == band_entry::invalid) return false;
        if (e->kind == band_entry::end_of_band) {
          window <<= e->bits;
          stream.blocks_passed = band_stream::ended_blocks(window, e->run) - 1;
          window <<= e->run;
          bit += e->bits + e->run;
          break;
        }
      }
      k += e->run;
      if (__builtin_expect(k > last, 0)) return false;
      nonzero |= std::uint64_t{e->kind} << (63 - k);
      if constexpr (store) block[coefficient_order[k]] = static_cast<std::int16_t>(value_of(window, *e) * (1 << low));
      window <<= e->bits;
      bit += e->bits;
    } while (k++ < last);
    run.sets[i] |= nonzero;
    if (__builtin_expect(bit > stream.end_bit, 0)) return false;
  }
  stream.bit = bit;
  return true;
}

/// Returns the next `count` bits. `count` is at most 63.
MILLRACE_ALWAYS_INLINE inline std::uint64_t band_bits_at(std::uintptr_t bit, unsigned count) noexcept {
  if (__builtin_expect(count <= 57, 1)) return bit_window_at(bit) >> 1 >> (63 - count);
  constexpr unsigned half = 32;
  return bit_window_at(bit) >> (64 - half) << (count - half) | bit_window_at(bit + half) >> (64 + half - count);
}

/// Adds `one` to the magnitude of each coefficient in the set. Processes four coefficients at a time; surplus
/// iterations write to spare space.
MILLRACE_ALWAYS_INLINE inline void correct(std::int16_t* block, coefficient_set set, int one) noexcept {
  while (set != 0)
    for (int i = 0; i < 4; ++i) {
      std::int16_t& value = block[coefficient_order[first_of(set)]];
      const int sign = value >> 15;
      value = static_cast<std::int16_t>(value + ((one ^ sign) - sign));
      set &= ~(coefficient_set{1} << 63 >> (first_of(set) & 63));
    }
}

/// Decodes the next lower bit of a band's coefficients. Returns false if the data is damaged.
template <class Sets, bool store>
MILLRACE_ALWAYS_INLINE inline bool decode_refinement(band_stream& stream, const block_run& run) noexcept {
  const band_table& table = *stream.table;
  const int one = 1 << stream.low;
  const coefficient_set band = band_of(stream.first, stream.last), last = set_of(stream.last);
  std::uintptr_t bit = stream.bit;
  std::uint32_t blocks_passed = stream.blocks_passed;
  for (std::size_t i = 0; i < run.count; ++i) {
    coefficient_set pending = run.sets[i] & band;   // coefficients whose correction bit is not yet read
    coefficient_set corrected = 0;                  // coefficients whose correction bit is 1
    std::int16_t* const block = store ? run.block(i) : nullptr;
    if (blocks_passed > 0) {
      --blocks_passed;
    } else {
      const coefficient_set zeros = ~run.sets[i] & band;
      coefficient_set nonzero = 0, place = 0;
      int zeros_left = static_cast<int>(size_of(zeros)) - 1;   // number of zeros after the next zero
      std::uint64_t window = bit_window_at(bit);
      do {
        band_entry e = table[window];
        window = bit_window_at(bit);
        if (__builtin_expect(e.kind > band_entry::coefficient, 0)) {
          if (e.kind == band_entry::long_word) e = table.find(window);
          if (e.kind == band_entry::invalid) return false;
          if (e.kind == band_entry::end_of_band) {
            blocks_passed = band_stream::ended_blocks(window << e.bits, e.run) - 1;
            bit += e.bits + e.run;
            break;
          }
        }
        zeros_left -= e.run;
        if (__builtin_expect(zeros_left < 0, 0)) return false;
        place = Sets::nth_last(zeros, static_cast<unsigned>(zeros_left));
        --zeros_left;
        nonzero |= place & (coefficient_set{0} - e.kind);
        const coefficient_set passed = before(pending, place);
        const unsigned count = size_of(passed);
        pending ^= passed;
        if constexpr (store) {
          // If the entry is only a run of zeros, this statement overwrites a zero with a zero.
          block[coefficient_order[first_of(place)]] = static_cast<std::int16_t>(value_of(window, e) * one);
          corrected |= Sets::spread(band_bits_at(bit + e.bits, count), passed);
        }
        bit += e.bits + count;
        constexpr unsigned left_at_least = band_table::index_bits + 21;   // an entry of at most 21 bits, and an index
        window = __builtin_expect(count <= 57 - left_at_least, 1) ? window << e.bits << count : bit_window_at(bit);
      } while (place != last);
      run.sets[i] |= nonzero;
    }
    const unsigned count = size_of(pending);
    if constexpr (store) {
      corrected |= Sets::spread(band_bits_at(bit, count), pending);
      correct(block, corrected, one);
    }
    bit += count;
    if (__builtin_expect(bit > stream.end_bit, 0)) return false;
  }
  stream.bit = bit;
  stream.blocks_passed = blocks_passed;
  return true;
}

}}}   // namespace millrace::detail
