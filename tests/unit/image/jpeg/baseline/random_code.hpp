// Huffman codes of files: those of photographs, and any others that a DHT segment can contain.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/image/jpeg/baseline/huffman_code.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace slow {

/// 16 counts and the symbols. `ac` symbols are sometimes any byte, else usual ones; lengths are skewed at random.
inline std::vector<std::uint8_t> random_code(millrace::rng& d, bool ac) {
  std::vector<std::uint8_t> bytes(16);
  const unsigned share = static_cast<unsigned>(d.between(10, 70));
  const bool unusual = d.chance(0.3);
  std::uint32_t free_words = 1;
  for (std::size_t i = 0; i < 16; ++i) {
    free_words = free_words * 2 > 4'000 ? 4'000 : free_words * 2;
    const std::uint32_t limit = free_words - 1;   // the word of all ones stays free
    std::uint32_t count = limit * share / 100 + static_cast<std::uint32_t>(d.below(2));
    const auto room = static_cast<std::uint32_t>((ac ? 162 : 12) + 16 - bytes.size());
    if (count > limit) count = limit;
    if (count > room) count = room;
    bytes[i] = static_cast<std::uint8_t>(count);
    free_words -= count;
    for (std::uint32_t k = 0; k < count; ++k) {
      std::uint8_t symbol = 0;
      if (!ac) symbol = static_cast<std::uint8_t>(d.below(unusual ? 16 : 12));
      else if (unusual && d.chance(0.2)) symbol = static_cast<std::uint8_t>(d.below(256));
      else if (d.chance(0.08)) symbol = 0;
      else if (d.chance(0.05)) symbol = 0xf0;
      else symbol = static_cast<std::uint8_t>(d.below(d.chance(0.5) ? 2 : 16) * 16 + 1 +
                                              d.below(d.chance(0.7) ? 2 : 10));
      bytes.push_back(symbol);
    }
  }
  return bytes;
}

/// A code that uses all words, including that of all ones, which T.81 reserves.
inline std::vector<std::uint8_t> full_code(millrace::rng& d, bool ac) {
  std::vector<std::uint8_t> bytes(16);
  std::uint32_t free_words = 1;
  const auto last = static_cast<std::size_t>(d.between(0, ac ? 6 : 3));
  for (std::size_t i = 0; i <= last; ++i) {
    free_words *= 2;
    const auto count = i == last ? free_words : static_cast<std::uint32_t>(d.below(free_words));
    bytes[i] = static_cast<std::uint8_t>(count);
    free_words -= count;
    for (std::uint32_t k = 0; k < count; ++k)   // usual symbols, the end of the block among them
      bytes.push_back(static_cast<std::uint8_t>(ac && d.chance(0.8) ? d.below(4) << 4 | (1 + d.below(4)) : d.below(8)));
  }
  return bytes;
}

/// One bit after the other, as T.81 figure F.16 has it. Length 0: no word of the code.
inline millrace::detail::huffman_code::word find_bit_by_bit(const std::vector<std::uint8_t>& bytes,
                                                            std::uint64_t window) {
  std::uint32_t code = 0, first = 0;
  std::size_t symbol = 16;
  for (unsigned length = 1; length <= 16; ++length) {
    code = code << 1 | static_cast<std::uint32_t>(window >> (64 - length) & 1);
    first <<= 1;
    const std::uint32_t count = bytes[length - 1];
    if (code >= first && code - first < count) return {length, bytes[symbol + (code - first)]};
    first += count;
    symbol += count;
  }
  return {0, 0};
}

}  // namespace slow
