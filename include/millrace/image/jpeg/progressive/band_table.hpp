// Tables that map the next 10 bits of a progressive scan to one symbol and the sign of its coefficient.
//
//   mr::detail::band_table table;
//   if (!table.build(scan.ac, {.kind = mr::detail::band_kind::first_ac, .low = scan.low})) return tables;
//   mr::detail::band_entry e = table[window];             // the stream's next bits; the first bit is topmost
//   if (e.kind == mr::detail::band_entry::long_word) e = table.find(window);
//   k += e.run;
//   int value = static_cast<int>(window >> (e.shift & 63) & ((1 << e.magnitude) - 1)) + e.bias;
//
// An entry consumes at most 26 bits. Threads: several threads may call const members concurrently.
// Source: ITU-T T.81 F.1.2.1 and G.1.2.
#pragma once

#include <millrace/image/jpeg/baseline/coefficient_table.hpp>
#include <millrace/image/jpeg/baseline/huffman_code.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

enum class band_kind : std::uint8_t { dc, first_ac, refining_ac };

struct alignas(8) band_entry {
  /// The kind of an entry. `zeros`: a run of zeros; `coefficient`: a run of zeros and a coefficient; `end_of_band`: the
  /// end of this block and of a run of following blocks; `long_word`: a word longer than the index; `invalid`: an
  /// invalid word or an impossible coefficient.
  enum : std::uint8_t { zeros = 0, coefficient = 1, end_of_band = 2, long_word = 3, invalid = 4 };

  std::uint8_t bits;        // bits to consume from the stream; for end_of_band without the length of the run of blocks
  std::uint8_t run;         // zeros before the coefficient; for end_of_band the number of bits of the run's length
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
    unsigned low;   // position of the scan's lowest bit
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

  /// `positive` is the magnitude's first bit.
  band_entry entry_of(unsigned length, unsigned byte, bool positive) const noexcept {
    if (use_.kind == band_kind::dc && byte > largest_dc_symbol) return rare(band_entry::invalid);
    const unsigned run = use_.kind == band_kind::dc ? 0 : byte >> 4;
    const unsigned size = use_.kind == band_kind::dc ? byte : byte & 15;
    const auto entry = [&](unsigned zeros, unsigned magnitude, int bias, std::uint8_t kind) {
      return band_entry{static_cast<std::uint8_t>(length + magnitude), static_cast<std::uint8_t>(zeros),
                        static_cast<std::uint8_t>(64 - length - magnitude), static_cast<std::uint8_t>(magnitude),
                        static_cast<std::int16_t>(bias), kind};
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

}}}  // namespace millrace::detail
