// A canonical Huffman code of a JPEG, with a simple function that decodes one symbol. A word is the sequence of bits
// that encodes one symbol.
//
//   mr::detail::huffman_code code;
//   if (!code.assign(component.dc)) return mr::jpeg_refusal::tables;   // too many words
//   auto [length, symbol] = code.find(window);                // reads the 16 topmost bits; length 0: no match
//   code.for_each([](unsigned bits, unsigned byte) { /* ... */ });             // in ascending order of words
//
// Threads: several threads may call const members concurrently. Source: ITU-T T.81 annex C and F.2.2.3.
#pragma once

#include <millrace/image/jpeg/baseline/scan_header.hpp>
#include <millrace/simd/byte_marks.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class huffman_code {
 public:
  /// Returns false if the code is invalid: it has too many words of one length, or a word of only ones. libjpeg also
  /// refuses such a code.
  bool assign(code_bytes bytes) noexcept {
    counts_.fill(0);
    symbols_.fill(0);
    std::uint32_t code = 0, symbol = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      counts_[i] = bytes[i];
      offsets_[i] = symbol - code;
      code += bytes[i];
      symbol += bytes[i];
      if (code >= std::uint32_t{2} << i) return false;
      limits_[i] = static_cast<std::int32_t>(code << (15 - i));
      code <<= 1;
    }
    for (std::size_t i = 0; i < symbol; ++i) symbols_[i] = bytes[16 + i];
    return true;
  }

  struct word {
    unsigned length, symbol;
  };

  /// Returns the length and the symbol of the first word in `window`. The highest bit of `window` is the stream's next
  /// bit.
  word find(std::uint64_t window) const noexcept {
    const auto next = static_cast<std::uint32_t>(window >> 48);
    const unsigned shorter = lengths_below(next);
    if (shorter == 16) return {0, 0};
    return {shorter + 1, symbols_[((next >> (15 - shorter)) + offsets_[shorter]) & 255]};
  }

  template <class Use>
  void for_each(const Use& use) const {
    std::size_t at = 0;
    for (unsigned length = 1; length <= 16; ++length)
      for (unsigned i = 0; i < counts_[length - 1]; ++i) use(length, static_cast<unsigned>(symbols_[at++]));
  }

 private:
  /// `next` contains the stream's next 16 bits. Returns the length of their first word minus 1, or 16 if no word
  /// matches.
  unsigned lengths_below(std::uint32_t next) const noexcept {
    return first_marked(marks_above(limits_.data(), static_cast<std::int32_t>(next)));
  }

  alignas(16) std::array<
      std::int32_t,
      16> limits_{};   // for each length: a 16-bit number below the limit begins with a word of at most this length
  std::array<std::uint32_t, 16> offsets_{};
  std::array<std::uint8_t, 16> counts_{};
  std::array<std::uint8_t, 256> symbols_{};
};

/// Returns the value that `size` magnitude bits encode, as defined in T.81, F.12.
constexpr int extended(unsigned bits, unsigned size) noexcept {
  return size == 0 || bits >> (size - 1) != 0 ? static_cast<int>(bits) : static_cast<int>(bits) - (1 << size) + 1;
}

}}}   // namespace millrace::detail
