// Tables of 256 bytes and sets of bytes for the word layers (words.hpp).
//
//   const mr::detail::word_layer::shuffled_byte_table table(entries);     // 256 bytes
//   store(bytes, table.of(load_bytes(bytes)));                            // one result per byte
//
// words.hpp describes the allowed callers and threads.
#pragma once

#include <millrace/simd/words.hpp>

#include <cstddef>
#include <cstdint>

#if defined __x86_64__ || defined __aarch64__

#include <millrace/simd/layer_begin.inc>

#ifdef __x86_64__

/// A table in 16 rows of 16 entries. The lower four bits of a byte select an entry of each row, and the higher four
/// bits select the row.
class shuffled_byte_table {
 public:
  MILLRACE_SIMD explicit shuffled_byte_table(const std::uint8_t* entries) noexcept : rows_(entries) {}

  MILLRACE_SIMD bytes of(bytes v) const noexcept {
    const words pairs = as_words(v);
    const bytes bits[3] = {as_bytes(pairs << 3), as_bytes(pairs << 2), as_bytes(pairs << 1)};
    return of_rows<8>(0, v, bits) | of_rows<8>(8, v ^ bytes_of(128), bits);
  }

 private:
  /// Returns the entry for each byte of `v` in the `count` rows from row `first` on. The lower four bits of the byte
  /// select the entry in a row. The next log2(count) bits, from bit 4 up, select the row. For this selection, bits[i]
  /// contains `v` shifted so that bit 4 + i of each byte is its highest bit. If the highest bit of the byte in `v` is
  /// set, the result is 0.
  template <std::size_t count>
  MILLRACE_SIMD bytes of_rows(std::size_t first, bytes v, const bytes* bits) const noexcept {
    if constexpr (count == 1) {
      return entries_of(load_table(rows_ + 16 * first), v);
    } else {
      constexpr std::size_t half = count / 2;
      return selected(of_rows<half>(first, v, bits), of_rows<half>(first + half, v, bits), bits[half / 2]);
    }
  }

  const std::uint8_t* rows_;
};

/// A table for AVX-512's byte permutations in registers of 256 bits: four rows of 64 entries. The permutations are
/// inline assembly, because compilers accept their builtins only in functions with a matching target.
class permuted_byte_table {
 public:
  MILLRACE_SIMD explicit permuted_byte_table(const std::uint8_t* entries) noexcept {
    for (std::size_t k = 0; k < 8; ++k) part_[k] = load_bytes(entries + 32 * k);
  }

  MILLRACE_SIMD bytes of(bytes v) const noexcept {
    const bytes bit6 = as_bytes(as_words(v) << 1);
    return selected(selected(of_64(v, 0), of_64(v, 2), bit6), selected(of_64(v, 4), of_64(v, 6), bit6), v);
  }

 private:
  MILLRACE_SIMD bytes of_64(bytes v, std::size_t part) const noexcept {
    asm("vpermi2b %2, %1, %0" : "+x"(v) : "x"(part_[part]), "xm"(part_[part + 1]));
    return v;
  }

  bytes part_[8];
};

/// A set of bytes, in 256 bits.
class byte_members {
 public:
  MILLRACE_SIMD explicit byte_members(const std::uint32_t* bits) noexcept
      : low_(load_table((const std::uint8_t*)bits)), high_(load_table((const std::uint8_t*)(bits + 4))) {}

  /// Returns 255 for bytes of the set, 0 for others.
  MILLRACE_SIMD bytes masks(bytes v) const noexcept {
    static constexpr std::uint8_t powers[16] = {1, 2, 4, 8, 16, 32, 64, 128};
    const bytes place = as_bytes(as_words(as_unsigned(as_words(v)) >> 3)) & bytes_of(31);
    const bytes bit = entries_of(load_table(powers), v & bytes_of(7));
    return equal_masks(selected(entries_of(low_, place), entries_of(high_, place), v) & bit, bit);
  }

 private:
  bytes low_, high_;
};

#else

class shuffled_byte_table {
 public:
  MILLRACE_SIMD explicit shuffled_byte_table(const std::uint8_t* entries) noexcept {
    for (std::size_t k = 0; k < 4; ++k) part_[k] = vld1q_u8_x4(entries + 64 * k);
  }

  /// Searches the four parts of 64 entries for each byte, one part after the other. For an index outside the first
  /// part, the first instruction returns 0. Each later instruction keeps the previous result of an index outside its
  /// part.
  MILLRACE_SIMD bytes of(bytes v) const noexcept {
    uint8x16_t result = vqtbl4q_u8(part_[0], v);
    result = vqtbx4q_u8(result, part_[1], (uint8x16_t)(v - bytes_of(64)));
    result = vqtbx4q_u8(result, part_[2], (uint8x16_t)(v - bytes_of(128)));
    return vqtbx4q_u8(result, part_[3], (uint8x16_t)(v - bytes_of(192)));
  }

 private:
  uint8x16x4_t part_[4];
};

using permuted_byte_table = shuffled_byte_table;

class byte_members {
 public:
  MILLRACE_SIMD explicit byte_members(const std::uint32_t* bits) noexcept
      : bits_(vld1q_u8_x2((const std::uint8_t*)bits)) {}

  MILLRACE_SIMD bytes masks(bytes v) const noexcept {
    const uint8x16_t places = vshrq_n_u8(v, 3);
    const uint8x16_t bit = vshlq_u8(vdupq_n_u8(1), (int8x16_t)(v & bytes_of(7)));
    return vtstq_u8(vqtbl2q_u8(bits_, places), bit);
  }

 private:
  uint8x16x2_t bits_;
};

#endif

#include <millrace/simd/layer_end.inc>

#endif
