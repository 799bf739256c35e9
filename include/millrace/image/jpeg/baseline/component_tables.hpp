// The decoding tables for the two Huffman codes of a component (luma or chroma), and a cache of such tables.
//
//   mr::detail::component_table_store store;                               // in a worker's scratch
//   auto tables = store.get(component.dc, component.ac);
//   if (!tables) return mr::jpeg_refusal::tables;                  // an invalid code
//   const mr::detail::coefficient_entry& e = tables->ac[window >> 53];     // see coefficient_table.hpp
//
// The store builds the tables for a new code in a few microseconds.
// Lifetime: each decoding job shares ownership of its tables. The store reuses the memory of tables that no job uses.
// Threads: one store per worker.
#pragma once

#include <millrace/base/aligned_allocator.hpp>
#include <millrace/image/jpeg/baseline/coefficient_table.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Tables for blocks whose pixels are not needed. One lookup skips all complete symbols in the next 12 bits of the
// stream.
//
//   mr::detail::skippable_symbols ac_words(ac);                     // for windows of every length
//   mr::detail::build_ac_skip_table(table, ac_words);               // or build_dc_skip_table(table, dc, ac_words)
//   const mr::detail::skip_entry e = table[window >> 52];
//   bits += e.bits;
//   k += e.advance;                                                 // e.advance includes ends_block if the block ends
//
// k is the number of the next coefficient. Bit 6 of the new k (beyond_block) is set in two cases: the symbols reach
// coefficient 63, or huffman_code must decode the next symbol. An entry consumes at most 22 bits: the 12 bits of its
// index, and up to 10 more magnitude bits of its last symbol.
// Source: ITU-T T.81 F.2.2.

struct skip_entry {
  std::uint8_t bits, advance;
};

constexpr unsigned skip_index_bits = 12;
constexpr std::size_t skip_entries = std::size_t{1} << skip_index_bits;
using skip_table = std::array<skip_entry, skip_entries>;

/// Returns an entry as the word `bits + 256 * advance`, so that entries can be added.
constexpr std::uint16_t packed_skip(unsigned bits, unsigned advance) noexcept {
  return static_cast<std::uint16_t>(bits | advance << 8);
}

/// Writes `count` entries. Entry i is the sum of `first` and `followers[i]`, where i is the value of the index bits
/// after the first symbol. If the sum would advance too far, entry i is only `first`.
inline void append_huffman_followed(std::uint16_t* to, std::size_t count, std::uint16_t first,
                                    const std::uint16_t* followers) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const auto both = static_cast<std::uint16_t>(first + followers[i]);
    // The sum of the advances, without ends_block, is too large if it is 64 or more. Bit 14 of the word is set in this
    // case, even if the second entry ends the block.
    const auto too_far = static_cast<std::uint16_t>(0U - (both >> 14 & 1U));
    to[i] = static_cast<std::uint16_t>((both & ~too_far) | (first & too_far));
  }
}

/// The entries for windows (the next bits of the stream) of 0 to 12 bits. of(bits)[i] is the entry for a window that
/// has `bits` bits and the value i. An entry is 0 if the window does not contain a complete code word.
class skippable_symbols {
 public:
  explicit skippable_symbols(const huffman_code& ac) {
    words_.fill(0);
    for (unsigned window = 1; window <= skip_index_bits; ++window) fill(window, ac);
  }
  const std::uint16_t* of(unsigned window) const noexcept { return words_.data() + (std::size_t{1} << window); }

 private:
  void fill(unsigned window, const huffman_code& ac) {
    std::uint16_t* at = words_.data() + (std::size_t{1} << window);
    ac.for_each([&](unsigned length, unsigned byte) {
      if (length > window) return;
      const ac_symbol s(byte);
      const std::size_t count = std::size_t{1} << (window - length);
      const std::uint16_t first = packed_skip(length + s.size, s.advance());
      if (!s.usual()) std::fill_n(at, count, std::uint16_t{0});
      else if (s.ends() || length + s.size >= window) std::fill_n(at, count, first);
      else
        for (std::size_t i = 0, rest = window - length - s.size; i < count; i += std::size_t{1} << rest)
          append_huffman_followed(at + i, std::size_t{1} << rest, first, of(static_cast<unsigned>(rest)));
      at += count;
    });
  }

  std::array<std::uint16_t, 2 * skip_entries> words_;
};

constexpr skip_entry unpacked_skip(std::uint16_t word) noexcept {
  if ((word & 255) == 0) return {0, slow_advance};
  return {static_cast<std::uint8_t>(word), static_cast<std::uint8_t>(word >> 8)};
}

inline void build_ac_skip_table(skip_table& table, const skippable_symbols& ac_words) {
  std::transform(ac_words.of(skip_index_bits), ac_words.of(skip_index_bits) + skip_entries, table.begin(),
                 unpacked_skip);
}

inline void build_dc_skip_table(skip_table& table, const huffman_code& dc, const skippable_symbols& ac_words) {
  std::array<std::uint16_t, skip_entries> words{};
  std::uint16_t* at = words.data();
  dc.for_each([&](unsigned length, unsigned size) {
    if (length > skip_index_bits) return;
    const std::size_t count = std::size_t{1} << (skip_index_bits - length);
    const unsigned total = length + size;
    constexpr unsigned longest = 22;
    if (size <= largest_dc_size && total <= longest) {
      const std::uint16_t first = packed_skip(total, 1);
      if (total >= skip_index_bits) std::fill_n(at, count, first);
      else
        for (std::size_t i = 0, rest = skip_index_bits - total; i < count; i += std::size_t{1} << rest)
          append_huffman_followed(at + i, std::size_t{1} << rest, first, ac_words.of(static_cast<unsigned>(rest)));
    }
    at += count;
  });
  std::transform(words.begin(), words.end(), table.begin(), unpacked_skip);
}

constexpr unsigned difference_index_bits = 9;

struct component_tables {
  alignas(64) coefficient_table dc, ac;
  alignas(64) skip_table dc_skip, ac_skip;
  alignas(64) std::array<coefficient_entry, std::size_t{1} << difference_index_bits> difference;   // one DC symbol each
  huffman_code dc_code, ac_code;

  bool build(code_bytes dc_bytes, code_bytes ac_bytes) {
    if (!dc_code.assign(dc_bytes) || !ac_code.assign(ac_bytes)) return false;
    bool possible = true;
    dc_code.for_each([&](unsigned, unsigned size) { possible = possible && size <= 15; });
    if (!possible) return false;
    const second_symbols second(ac_code);
    build_ac_table(ac, ac_code, second);
    build_dc_table(dc, dc_code, second);
    const skippable_symbols words(ac_code);
    build_ac_skip_table(ac_skip, words);
    build_dc_skip_table(dc_skip, dc_code, words);
    build_differences();
    return true;
  }

 private:
  void build_differences() {
    coefficient_entry* at = difference.data();
    dc_code.for_each([&](unsigned length, unsigned size) {
      if (length > difference_index_bits) return;
      const std::size_t count = std::size_t{1} << (difference_index_bits - length);
      const unsigned total = length + size;
      const bool fits = size <= largest_dc_size && (size == 0 || length < difference_index_bits);
      entry_fields f{.bits = total, .advance = 1, .shift = 64 - total, .magnitude = size};
      std::fill_n(at, count, unpacked(fits ? packed_entry(f) : slow_entry));
      f.bias = 1 - (1 << size);
      if (fits && size > 0) std::fill_n(at, count / 2, unpacked(packed_entry(f)));
      at += count;
    });
    std::fill(at, difference.data() + difference.size(), unpacked(slow_entry));
  }
};

class component_table_store {
 public:
  std::shared_ptr<const component_tables> get(code_bytes dc, code_bytes ac) {
    const auto it = std::find_if(cache_.begin(), cache_.end(), [&](const entry& k) { return k.is(dc, ac); });
    if (it != cache_.end()) {
      std::rotate(cache_.begin(), it, it + 1);   // most recently used first
      return cache_.front().tables;
    }
    if (cache_.size() < most_) cache_.emplace_back();
    entry& oldest = cache_.back();   // its tables are reused if no job owns them
    oldest.key.clear();
    if (oldest.tables.use_count() != 1) oldest.tables = make_aligned_shared<component_tables>();
    if (!oldest.tables->build(dc, ac)) return nullptr;
    oldest.dc_bytes = dc.size();
    oldest.key.assign(dc.begin(), dc.end());
    oldest.key.insert(oldest.key.end(), ac.begin(), ac.end());
    std::rotate(cache_.begin(), cache_.end() - 1, cache_.end());
    return cache_.front().tables;
  }

  std::size_t size() const noexcept { return cache_.size(); }

 private:
  static constexpr std::size_t most_ = 16;   // maximum number of entries; each has 52 KiB

  struct entry {
    std::vector<std::uint8_t> key{};   // empty before the first use
    std::size_t dc_bytes = 0;
    std::shared_ptr<component_tables> tables{};

    bool is(code_bytes dc, code_bytes ac) const {
      return dc_bytes == dc.size() && key.size() == dc.size() + ac.size() &&
             std::equal(dc.begin(), dc.end(), key.begin()) &&
             std::equal(ac.begin(), ac.end(), key.begin() + static_cast<std::ptrdiff_t>(dc.size()));
    }
  };

  std::vector<entry> cache_;
};

}}}   // namespace millrace::detail
