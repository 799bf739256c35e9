// Decodes the blocks of one JPEG, or of two JPEGs at once.
//
//   mr::detail::block_stream s;
//   s.bit = first_bit;
//   s.begin_segment(slots, count, stored, stop);   // slots[count] must exist, too
//   loops.run(s, other);                           // block_loops.hpp; until one stream reaches the end of its segment
//   if (s.at_end()) s.end_segment();               // s.bit is the next segment's first bit
//   if (s.invalid) return damaged;                 // there was an invalid code
//
// A stream is the position in the coded bits of one JPEG. A slot describes one block, and a segment is a sequence of
// slots (segment_slots.hpp). A step is one lookup in a table. Rare symbols, such as symbols with a long code, have slow
// entries in the table. A slow entry ends the loop. decode_rare() decodes the symbol, and then the loop begins again.
// The check for a slow entry is the only branch that depends on the result of a lookup. With two streams, the processor
// works on one stream while the other stream waits for its lookup. Invalid input cannot corrupt memory: the decoder
// writes only to the coefficients to which the slots point, and to the spare space after them.
// Units: a position is a bit address, 8 * address + bit. Source: ITU-T T.81 F.2.2. Threads: any; streams share no
// state.
#pragma once

#include <millrace/image/jpeg/baseline/component_tables.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The number of coefficients in the memory of two adjacent blocks. Row i of the left block begins at 16 * i. Row i of
/// the right block begins at 16 * i + 8. The last 16 are spare space, to which loops write unneeded values.
constexpr std::size_t pair_coefficients = 144;
constexpr std::size_t right_block = 8;

/// Returns the table of offsets of a block's coefficients: element k is the offset of coefficient k. The elements from
/// 64 on contain the offset of the spare space, so that invalid numbers of coefficients cannot cause writes elsewhere.
/// The table must be aligned to 256 bytes, because number_of() computes k from the address of element k.
constexpr std::array<std::uint8_t, 256> make_coefficient_order() noexcept {
  std::array<std::uint8_t, 256> order{};
  order.fill(128);
  unsigned row = 0, column = 0;
  for (std::size_t k = 0; k < 64; ++k) {
    order[k] = static_cast<std::uint8_t>(16 * row + column);
    const bool up = (row + column) % 2 == 0;
    if (up) {
      if (column == 7) ++row;
      else if (row == 0) ++column;
      else --row, ++column;
    } else {
      if (row == 7) ++column;
      else if (column == 0) ++row;
      else ++row, --column;
    }
  }
  return order;
}
alignas(256) inline constexpr std::array<std::uint8_t, 256> coefficient_order = make_coefficient_order();

/// One block of a segment. If the block is stored, the decoder writes its coefficients. If the block is skipped, the
/// decoder only finds its end.
struct block_slot {
  const void* ac;               // table for the rest of this block
  const void* next_dc;          // table for the next block
  std::int16_t* coefficients;   // written if the block is stored; never null
  const component_tables* tables;
  std::uintptr_t begin_bit;   // position of a skipped block's DC difference
};

/// A table that contains only slow entries, which end the loop. begin_segment() sets it as the table for the block
/// after the segment, in place of a coefficient_table or a skip_table.
class stop_table {
 public:
  stop_table() noexcept {
    constexpr std::uint8_t entry[2] = {0, slow_advance};
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = entry[i % 2];
  }
  const void* data() const noexcept { return bytes_.data(); }

 private:
  alignas(64) std::array<std::uint8_t, sizeof(coefficient_table)> bytes_;
};
static_assert(sizeof(skip_table) <= sizeof(coefficient_table));

inline std::uint64_t bit_window_at(std::uintptr_t bit) noexcept {
  std::uint64_t bytes;
  std::memcpy(&bytes, reinterpret_cast<const void*>(bit >> 3), 8);
  return __builtin_bswap64(bytes) << (bit & 7);
}

struct block_stream {
  std::uintptr_t bit = 0;   // position of the next symbol
  unsigned k = 0;           // number of the next coefficient; 0 is the block's DC difference
  bool store = false;       // whether blocks are stored; otherwise they are skipped
  bool invalid = false;     // an invalid code occurred; the decoded data is undefined
  const void* table = nullptr;
  block_slot* slot = nullptr;
  block_slot* end = nullptr;
  const void* next_segments_dc = nullptr;

  void begin_segment(block_slot* slots, std::size_t count, bool stored, const stop_table& stop) noexcept {
    store = stored;
    k = 0;
    slot = slots;
    end = slots + count;
    slots->begin_bit = bit;
    const component_tables& first = *slots->tables;
    table = stored ? static_cast<const void*>(first.dc.data()) : first.dc_skip.data();
    next_segments_dc = end[-1].next_dc;
    end[-1].next_dc = stop.data();
  }
  void end_segment() noexcept { end[-1].next_dc = next_segments_dc; }
  bool at_end() const noexcept { return slot == end; }

  /// Decodes the symbol at which a loop has stopped. At the segment's end, decodes nothing and returns false.
  [[gnu::noinline]] bool decode_rare() noexcept {
    if (at_end()) return false;
    decode_symbol();
    return true;
  }

  /// Decodes the next symbol of any kind.
  void decode_symbol() noexcept {
    const std::uint64_t window = bit_window_at(bit);
    if (k == 0) decode_difference(window);
    else decode_ac(window);
    if (!store) slot[1].begin_bit = bit;
    if (k < 64) return;
    invalid = invalid || k > 64;
    table = slot->next_dc;
    ++slot;
    k = 0;
  }

 private:
  void decode_difference(std::uint64_t window) noexcept {
    auto [length, size] = slot->tables->dc_code.find(window);
    if (length == 0 || size > largest_dc_size) {
      invalid = true;
      length = 1;
      size = 0;
    }
    if (store) slot->coefficients[0] = magnitude(window, length, size);
    bit += length + size;
    k = 1;
    table = slot->ac;
  }
  void decode_ac(std::uint64_t window) noexcept {
    auto [length, byte] = slot->tables->ac_code.find(window);
    ac_symbol s(byte);
    if (length == 0 || !s.usual()) {
      invalid = true;
      length = 1;
      s = ac_symbol(0);
    }
    bit += length + s.size;
    if (s.ends()) {
      k = 64;
      return;
    }
    k += s.run + 1;
    if (store && s.size > 0) slot->coefficients[coefficient_order[k - 1]] = magnitude(window, length, s.size);
  }
  static std::int16_t magnitude(std::uint64_t window, unsigned length, unsigned size) noexcept {
    if (size == 0) return 0;
    return static_cast<std::int16_t>(extended(static_cast<unsigned>(window << length >> (64 - size)), size));
  }
};

/// Returns the coefficient number for an element of coefficient_order, computed from the element's address.
MILLRACE_ALWAYS_INLINE inline unsigned number_of(const std::uint8_t* place) noexcept {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(place) % coefficient_order.size());
}

/// The part of a stream that a loop keeps in registers.
struct live_bit_stream {
  std::uint64_t window;
  std::uintptr_t bit;
  const void* table;
  block_slot* slot;
  const std::uint8_t* place;   // points to element k of coefficient_order

  MILLRACE_ALWAYS_INLINE explicit live_bit_stream(const block_stream& s) noexcept
      : window(0), bit(s.bit), table(s.table), slot(s.slot), place(coefficient_order.data() + s.k) {}
  MILLRACE_ALWAYS_INLINE void save(block_stream& s) const noexcept {
    s.bit = bit;
    s.k = number_of(place);
    s.table = table;
    s.slot = slot;
  }
};

/// Two parts of a lookup: value() decodes the last coefficient from a window (the next bits of the stream), and
/// next_block() moves to the next block if the current block ends, without a branch.
struct portable_huffman_steps {
  /// Returns the value that the magnitude bits of the last symbol encode.
  MILLRACE_ALWAYS_INLINE static std::int16_t value(std::uint64_t window, const coefficient_entry& e) noexcept {
    const std::uint64_t bits = window >> (e.shift & 63) & ((std::uint64_t{1} << (e.magnitude & 63)) - 1);
    return static_cast<std::int16_t>(static_cast<int>(bits) + e.bias);
  }
  MILLRACE_ALWAYS_INLINE static void next_block(live_bit_stream& s, std::uint64_t advance,
                                                const std::uint8_t* next) noexcept {
    const std::uint64_t ends = advance >> 7;
    const void* const tables[2] = {s.slot->ac, s.slot->next_dc};
    s.table = tables[ends];
    s.slot += ends;
    s.place = coefficient_order.data() + (number_of(next) & (ends - 1));
  }
};

#ifdef __x86_64__
// The assembly loads this pointer from memory, because no register is free.
inline constexpr const std::uint8_t* first_place = coefficient_order.data();

/// Uses inline assembly, because compilers convert conditional expressions to branches, and intrinsics would require a
/// compiler flag.
struct x86_huffman_steps {
  MILLRACE_ALWAYS_INLINE static std::int16_t value(std::uint64_t window, const coefficient_entry& e) noexcept {
    std::uint16_t control;
    std::memcpy(&control, &e.shift, 2);
    std::uint64_t bits;
    asm("bextr %q2, %1, %0\n\tadd %3, %w0"
        : "=&r"(bits)
        : "r"(window), "r"(std::uint64_t{control}), "m"(e.bias)
        : "cc");
    return static_cast<std::int16_t>(bits);
  }
  MILLRACE_ALWAYS_INLINE static void next_block(live_bit_stream& s, std::uint64_t advance,
                                                const std::uint8_t* next) noexcept {
    const void* table = s.slot->ac;
    block_slot* const next_slot = s.slot + 1;
    asm("test $0x80, %b[advance]\n\tcmovne %[dc], %[table]\n\tcmovne %[after], %[slot]\n\tcmovne %[first], %[place]"
        : [table] "+r"(table), [slot] "+r"(s.slot), [place] "+r"(next)
        : [advance] "q"(advance), [dc] "m"(s.slot->next_dc), [after] "r"(next_slot), [first] "m"(first_place)
        : "cc");
    s.table = table;
    s.place = next;
  }
};
#endif

#ifdef __aarch64__
/// Uses inline assembly, which selects one of the two table pointers in registers. g++ compiles the portable
/// next_block() to stores of both pointers and a load of one of them.
struct arm_huffman_steps : portable_huffman_steps {
  MILLRACE_ALWAYS_INLINE static void next_block(live_bit_stream& s, std::uint64_t advance,
                                                const std::uint8_t* next) noexcept {
    const void* table = s.slot->ac;
    const void* const next_dc = s.slot->next_dc;
    block_slot* const next_slot = s.slot + 1;
    asm("tst %[advance], #0x80\n\tcsel %[table], %[dc], %[table], ne\n\tcsel %[slot], %[after], %[slot], ne\n\t"
        "csel %[place], %[first], %[place], ne"
        : [table] "+&r"(table), [slot] "+&r"(s.slot), [place] "+&r"(next)
        : [advance] "r"(advance), [dc] "r"(next_dc), [after] "r"(next_slot), [first] "r"(coefficient_order.data())
        : "cc");
    s.table = table;
    s.place = next;
  }
};
#endif

MILLRACE_ALWAYS_INLINE inline bool is_beyond(const std::uint8_t* place) noexcept {
  return (reinterpret_cast<std::uintptr_t>(place) & beyond_block) != 0;
}

/// Performs one lookup. Returns true if decode_rare() must decode the symbol, because the entry is slow or reaches
/// coefficient 63. In this case, the function writes only zeros or values that the decoder writes again.
template <class Steps, bool refill>
MILLRACE_ALWAYS_INLINE inline bool store_huffman_step(live_bit_stream& s) noexcept {
  const coefficient_entry& e = static_cast<const coefficient_entry*>(
      s.table)[s.window >> (64 - coefficient_index_bits)];
  if constexpr (refill) s.window = bit_window_at(s.bit);   // after the address of `e` is computed
  const std::uint64_t advance = e.advance;
  const std::uint8_t* const next = s.place + advance;
  std::int16_t* const to = s.slot->coefficients;
  to[s.place[e.run]] = e.value;
  to[next[-1]] = Steps::value(s.window, e);
  if (__builtin_expect(is_beyond(next), 0)) return true;
  const unsigned bits = e.bits;
  s.window <<= bits;
  s.bit += bits;
  Steps::next_block(s, advance, next);
  return false;
}

template <class Steps, bool refill>
MILLRACE_ALWAYS_INLINE inline bool skip_huffman_step(live_bit_stream& s) noexcept {
  const skip_entry& e = static_cast<const skip_entry*>(s.table)[s.window >> (64 - skip_index_bits)];
  if constexpr (refill) s.window = bit_window_at(s.bit);
  const unsigned bits = e.bits;
  const std::uint64_t advance = e.advance;
  const std::uint8_t* const next = s.place + advance;
  if (__builtin_expect(is_beyond(next), 0)) return true;
  s.window <<= bits;
  s.bit += bits;
  s.slot[1].begin_bit = s.bit;   // used only if a block ends here
  Steps::next_block(s, advance, next);
  return false;
}

template <class Steps, bool store, bool refill>
MILLRACE_ALWAYS_INLINE inline bool step(live_bit_stream& s) noexcept {
  if constexpr (store) return store_huffman_step<Steps, refill>(s);
  else return skip_huffman_step<Steps, refill>(s);
}

/// Runs until the segment's end. Only every second lookup refills the window, because two lookups consume at most 44
/// bits and a refill provides at least 57.
template <class Steps, bool store>
MILLRACE_ALWAYS_INLINE inline void run_block_loop(block_stream& stream) noexcept {
  do {
    live_bit_stream s(stream);
    s.window = bit_window_at(s.bit);
    for (;;) {
      if (step<Steps, store, true>(s)) break;
      if (step<Steps, store, false>(s)) break;
    }
    s.save(stream);
  } while (stream.decode_rare());
}

/// Runs until one of the streams reaches its segment's end.
template <class Steps, bool store_a, bool store_b>
MILLRACE_ALWAYS_INLINE inline void run_block_loop(block_stream& first, block_stream& second) noexcept {
  block_stream* stuck;
  do {
    live_bit_stream a(first), b(second);
    a.window = bit_window_at(a.bit);
    b.window = bit_window_at(b.bit);
    for (;;) {
      stuck = &first;
      if (step<Steps, store_a, true>(a)) break;
      stuck = &second;
      if (step<Steps, store_b, true>(b)) break;
      stuck = &first;
      if (step<Steps, store_a, false>(a)) break;
      stuck = &second;
      if (step<Steps, store_b, false>(b)) break;
    }
    a.save(first);
    b.save(second);
  } while (stuck->decode_rare());
}

}}}   // namespace millrace::detail
