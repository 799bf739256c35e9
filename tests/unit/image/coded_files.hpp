// Gray JPEGs with any Huffman codes that a DHT segment can contain; no encoder writes most of them.
//
//   auto file = slow::coded_file({.dc = slow::random_code(d, false), .ac = slow::full_code(d, true)}, d);
//
// The data are random words of the codes, so that the file is complete if its codes are possible.
// Format: ITU-T T.81 annexes B, C and F.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/image/jpeg/baseline/huffman_code.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
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

struct file_codes {
  std::vector<std::uint8_t> dc{}, ac{};   // 16 counts, then the symbols
};

class code_writer {
 public:
  explicit code_writer(std::vector<std::byte>& to) : to_(to) {}

  void put(std::uint32_t bits, unsigned count) {
    while (count-- > 0) {
      byte_ = byte_ << 1 | (bits >> count & 1);
      if (++bits_ < 8) continue;
      to_.push_back(static_cast<std::byte>(byte_));
      if (byte_ == 255) to_.push_back(std::byte{0});
      byte_ = bits_ = 0;
    }
  }
  void end() {
    while (bits_ != 0) put(1, 1);
  }

 private:
  std::vector<std::byte>& to_;
  unsigned byte_ = 0, bits_ = 0;
};

struct code_word {
  std::uint32_t word;
  unsigned length, symbol;
};

inline std::vector<code_word> words_of(const std::vector<std::uint8_t>& code) {
  std::vector<code_word> words;
  std::uint32_t word = 0;
  for (unsigned length = 1; length <= 16; ++length, word <<= 1)
    for (unsigned k = 0; k < code[length - 1]; ++k)
      words.push_back({word++, length, code[16 + words.size()]});
  return words;
}

/// Empty if a block could not end: the code has no word for the end.
inline std::optional<std::vector<std::byte>> coded_file(const file_codes& codes, millrace::rng& d) {
  const auto dc = words_of(codes.dc), ac = words_of(codes.ac);
  const auto end = std::find_if(ac.begin(), ac.end(), [](const code_word& w) { return w.symbol == 0; });
  if (dc.empty() || end == ac.end()) return std::nullopt;

  std::vector<std::byte> file;
  const auto add = [&](std::initializer_list<unsigned> bytes) {
    for (const unsigned b : bytes) file.push_back(static_cast<std::byte>(b));
  };
  const auto add_code = [&](unsigned kind, const std::vector<std::uint8_t>& code) {
    const auto length = static_cast<unsigned>(3 + code.size());
    add({0xff, 0xc4, length >> 8, length & 255, kind});
    for (const std::uint8_t b : code) add({b});
  };
  const auto width = static_cast<unsigned>(d.between(1, 40)), height = static_cast<unsigned>(d.between(1, 40));
  add({0xff, 0xd8, 0xff, 0xdb, 0, 67, 0});
  for (int i = 0; i < 64; ++i) add({1});
  add({0xff, 0xc0, 0, 11, 8, 0, height, 0, width, 1, 1, 0x11, 0});
  add_code(0x00, codes.dc);
  add_code(0x10, codes.ac);
  add({0xff, 0xda, 0, 8, 1, 1, 0x00, 0, 63, 0});

  code_writer data(file);
  const auto put = [&](const code_word& w, unsigned size) {
    data.put(w.word, w.length);
    data.put(static_cast<std::uint32_t>(d.bits()) & ((1U << size) - 1), size);
  };
  for (unsigned block = 0; block < (width + 7) / 8 * ((height + 7) / 8); ++block) {
    const code_word& first = dc[d.below(dc.size())];
    put(first, first.symbol & 15);
    for (unsigned k = 1; k < 64;) {
      const code_word& w = d.chance(0.2) ? *end : ac[d.below(ac.size())];
      const unsigned run = w.symbol >> 4, size = w.symbol & 15;
      if (size == 0 && run != 15) {   // libjpeg ends a block at each of these
        put(w, 0);
        break;
      }
      if (k + run > 63) continue;     // not beyond the block
      put(w, size);
      k += run + 1;
    }
  }
  data.end();
  add({0xff, 0xd9});
  return file;
}

}  // namespace slow
