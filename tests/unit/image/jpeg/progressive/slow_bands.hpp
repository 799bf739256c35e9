// The AC scans of a progressive JPEG one bit at a time, as in ITU-T T.81, G.3 to G.8.
#pragma once

#include "../baseline/random_code.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace slow {

using zigzag_block = std::array<int, 64>;

class slow_band {
 public:
  slow_band(const std::vector<std::uint8_t>& code, const std::vector<std::uint8_t>& bytes, unsigned first,
            unsigned last, unsigned low)
      : code_(code), bytes_(bytes), first_(first), last_(last), low_(low) {}

  std::size_t bit = 0;
  unsigned blocks_passed = 0;

  /// Returns false for input that libjpeg warns of, and for coefficients beyond the band or beyond 10 bits.
  bool first_bits(zigzag_block& block) {
    if (blocks_passed > 0) return --blocks_passed, true;
    for (unsigned k = first_; k <= last_; ++k) {
      const int byte = symbol();
      if (byte < 0) return false;
      const unsigned run = static_cast<unsigned>(byte) >> 4, size = static_cast<unsigned>(byte) & 15;
      if (size == 0 && run < 15) return blocks_passed = (1U << run) + take(run) - 1, true;
      if (size + low_ > 10) return false;
      k += run;
      if (k > last_) return false;
      if (size == 0) continue;
      const int bits = static_cast<int>(take(size));
      block[k] = (bits >> (size - 1) != 0 ? bits : bits - (1 << size) + 1) * (1 << low_);
    }
    return true;
  }

  bool refinement(zigzag_block& block) {
    unsigned k = first_;
    if (blocks_passed == 0) {
      for (; k <= last_; ++k) {
        const int byte = symbol();
        if (byte < 0) return false;
        unsigned run = static_cast<unsigned>(byte) >> 4;
        const unsigned size = static_cast<unsigned>(byte) & 15;
        if (size == 0 && run < 15) {
          blocks_passed = (1U << run) + take(run);
          break;
        }
        if (size > 1 || (size == 1 && low_ > 9)) return false;
        const int fresh = size == 0 ? 0 : take(1) != 0 ? 1 << low_ : -(1 << low_);
        for (;; ++k) {
          if (k > last_) return false;
          if (block[k] != 0) correct(block[k]);
          else if (run-- == 0) break;
        }
        block[k] = fresh;
      }
      if (k > last_) return true;
    }
    for (; k <= last_; ++k)
      if (block[k] != 0) correct(block[k]);
    --blocks_passed;
    return true;
  }

 private:
  unsigned take(unsigned count) {
    unsigned bits = 0;
    for (; count > 0; --count, ++bit) bits = bits << 1 | (bytes_[bit / 8] >> (7 - bit % 8) & 1U);
    return bits;
  }
  int symbol() {
    const std::size_t before = bit;
    std::uint64_t window = std::uint64_t{take(16)} << 48;
    const auto word = find_bit_by_bit(code_, window);
    bit = before + word.length;
    return word.length == 0 ? -1 : static_cast<int>(word.symbol);
  }
  void correct(int& value) {
    if (take(1) != 0) value += value < 0 ? -(1 << low_) : 1 << low_;
  }

  const std::vector<std::uint8_t>& code_;
  const std::vector<std::uint8_t>& bytes_;
  unsigned first_, last_, low_;
};

}  // namespace slow
