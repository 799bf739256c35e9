// Two pairs of Huffman codes that all JPEGs of a set share: for luma and for chroma, each for DC and AC symbols.
//
//   const transcode::jpeg_codes codes(counts);                             // words of at most 10 bits, rare ones 16
//   auto file = transcode::transcode_jpeg(bytes, {.codes = &codes});
//   const auto again = transcode::jpeg_codes::from_text(codes.text());     // to store them: hexadecimal digits
//
// Every symbol of 8-bit baseline JPEGs has a word: 12 DC and 162 AC symbols. The codes can therefore encode every
// image, also one that was not counted. Within its limits each code is optimal for the counts, and a function of them.
// No word is all ones. AC symbols with small or zero counts have words of up to 16 bits; with 10 bits the files would
// be 3 % larger. A decoder with tables of 11 bits finds short words in one lookup, and builds its tables once for the
// set.
// Errors: setup_error if the limits are impossible, or if a text does not contain such codes. Threads: a value.
// Source: ITU-T T.81, annex C; length limits by package-merge (package_merge.hpp).
#pragma once

#include "jpeg_symbol_counts.hpp"
#include "package_merge.hpp"

#include <millrace/base/error.hpp>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/simd/precise_begin.inc>

namespace transcode {

/// The longest words of jpeg_codes, in bits.
struct jpeg_codes_options {
  unsigned longest_dc = 8;    ///< 4..16
  unsigned longest_ac = 10;   ///< 8..16
  double rare = 0.0001;       ///< AC symbols with less than this share of all have words of up to 16 bits; 0: no symbol
};

/// Huffman codes for luma and chroma.
class jpeg_codes {
 public:
  /// Computes the optimal codes for these counts. Throws setup_error if a limit is out of its range.
  explicit jpeg_codes(const jpeg_symbol_counts& counts, const jpeg_codes_options& options = {});

  /// Parses a result of text(). Throws setup_error for any other text.
  static jpeg_codes from_text(std::string_view text);
  /// Returns the codes as hexadecimal digits.
  std::string text() const;

  /// Returns a code as a DHT segment stores it: 16 numbers of words by length, then the symbols.
  /// `table` is 0 for luma and 1 for chroma.
  std::span<const std::uint8_t> dc(std::size_t table) const noexcept { return dc_[table]; }
  std::span<const std::uint8_t> ac(std::size_t table) const noexcept { return ac_[table]; }

  friend bool operator==(const jpeg_codes&, const jpeg_codes&) = default;

 private:
  static constexpr std::size_t lengths = 16, dc_words = 12, ac_words = 162;

  jpeg_codes() = default;

  std::array<std::array<std::uint8_t, lengths + dc_words>, jpeg_symbol_counts::tables> dc_{};
  std::array<std::array<std::uint8_t, lengths + ac_words>, jpeg_symbol_counts::tables> ac_{};
};

/// Returns true for the symbols of 8-bit baseline JPEGs: sizes of 1 to 10, the end of a block, and 16 zeros.
constexpr bool is_baseline_ac_symbol(unsigned symbol) noexcept {
  const unsigned size = symbol & 15;
  return (size >= 1 && size <= 10) || symbol == 0x00 || symbol == 0xf0;
}
constexpr bool is_baseline_dc_symbol(unsigned symbol) noexcept { return symbol < jpeg_symbol_counts::dc_symbols; }

struct code_limits {
  unsigned longest = 16;
  double rare = 0;
};

/// Writes a code as in DHT. An additional, unused symbol gets the last of the longest words, which is all ones.
inline void write_limited_code(std::span<const std::uint64_t> counts, bool (*is_symbol)(unsigned),
                               const code_limits& limits, std::span<std::uint8_t> to) {
  constexpr unsigned longest_of_all = 16;
  const double all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
  std::vector<std::uint8_t> symbols, longest;
  std::vector<std::uint64_t> weights;
  for (unsigned s = 0; s < counts.size(); ++s)
    if (is_symbol(s)) {
      symbols.push_back(static_cast<std::uint8_t>(s));
      weights.push_back(counts[s]);
      const bool is_rare = static_cast<double>(counts[s]) < limits.rare * all;
      longest.push_back(static_cast<std::uint8_t>(is_rare ? longest_of_all : limits.longest));
    }
  weights.push_back(0);
  longest.push_back(*std::max_element(longest.begin(), longest.end()));
  std::vector<std::uint8_t> lengths(weights.size());
  package_merge(weights, longest, lengths);
  std::fill(to.begin(), to.end(), std::uint8_t{0});
  auto next = to.begin() + 16;
  for (unsigned length = 1; length <= longest_of_all; ++length)
    for (std::size_t i = 0; i < symbols.size(); ++i)
      if (lengths[i] == length) {
        ++to[length - 1];
        *next++ = symbols[i];
      }
}

/// Returns true if the code has a word for each symbol, and none that is all ones.
inline bool is_complete_code(std::span<const std::uint8_t> code, bool (*is_symbol)(unsigned)) {
  std::uint32_t words = 0, used = 0;   // used: share of 2^16
  for (unsigned length = 1; length <= 16; ++length) {
    words += code[length - 1];
    used += std::uint32_t{code[length - 1]} << (16 - length);
  }
  std::bitset<256> with_word;
  for (const std::uint8_t symbol : code.subspan(16)) {
    if (!is_symbol(symbol)) return false;
    with_word.set(symbol);
  }
  const std::size_t symbols = code.size() - 16;
  return words == symbols && with_word.count() == symbols && used < std::uint32_t{1} << 16;
}

inline void append_hex(std::string& text, std::span<const std::uint8_t> code) {
  for (const unsigned byte : code) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
}

/// Returns false if the text is too short or contains other characters.
inline bool take_hex(std::string_view& text, std::span<std::uint8_t> code) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  if (text.size() < 2 * code.size()) return false;
  for (auto& byte : code) {
    const int high = digit(text[0]), low = digit(text[1]);
    if (high < 0 || low < 0) return false;
    byte = static_cast<std::uint8_t>(high * 16 + low);
    text.remove_prefix(2);
  }
  return true;
}

inline jpeg_codes::jpeg_codes(const jpeg_symbol_counts& counts, const jpeg_codes_options& options) {
  if (options.longest_dc < 4 || options.longest_dc > 16 || options.longest_ac < 8 || options.longest_ac > 16 ||
      !(options.rare >= 0 && options.rare <= 1))
    throw millrace::setup_error("codes of a JPEG with words of at most " + std::to_string(options.longest_dc) +
                                    " (DC) and " + std::to_string(options.longest_ac) +
                                    " (AC) bits, except for symbols with a share of " + std::to_string(options.rare) +
                                    ", are not possible",
                                "Use 4 to 16, 8 to 16 and 0 to 1", {.stage = "jpeg"});
  for (std::size_t t = 0; t < jpeg_symbol_counts::tables; ++t) {
    write_limited_code(counts.dc[t], is_baseline_dc_symbol, {.longest = options.longest_dc, .rare = 0}, dc_[t]);
    write_limited_code(counts.ac[t], is_baseline_ac_symbol, {.longest = options.longest_ac, .rare = options.rare},
                       ac_[t]);
  }
}

inline std::string jpeg_codes::text() const {
  std::string text;
  for (std::size_t t = 0; t < jpeg_symbol_counts::tables; ++t) {
    append_hex(text, dc_[t]);
    append_hex(text, ac_[t]);
  }
  return text;
}

inline jpeg_codes jpeg_codes::from_text(std::string_view text) {
  jpeg_codes codes;
  bool good = true;
  std::string_view rest = text;
  for (std::size_t t = 0; t < jpeg_symbol_counts::tables; ++t)
    good = good && take_hex(rest, codes.dc_[t]) && take_hex(rest, codes.ac_[t]) &&
           is_complete_code(codes.dc_[t], is_baseline_dc_symbol) &&
           is_complete_code(codes.ac_[t], is_baseline_ac_symbol);
  if (!good || !rest.empty())
    throw millrace::setup_error("a text does not contain the codes of JPEGs: got '" +
                                    millrace::printable(text.substr(0, 40)) +
                                    "', expected hexadecimal digits of codes that have a word for every symbol",
                                "Pass a result of jpeg_codes::text()", {.stage = "jpeg"});
  return codes;
}

}   // namespace transcode

#include <millrace/simd/precise_end.inc>
