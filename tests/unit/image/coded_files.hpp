// Gray JPEGs with any Huffman codes that a DHT segment can contain; no encoder writes most of them.
//
//   auto file = slow::coded_file({.dc = slow::random_code(d, false), .ac = slow::full_code(d, true)}, d);
//
// The data are random words of the codes, so that the file is complete if its codes are possible.
// Format: ITU-T T.81 annexes B, C and F.
#pragma once

#include "jpeg/baseline/random_code.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

namespace slow {

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
