// Two pairs of Huffman codes that all JPEGs of a set share: for luma and for chroma, each for DC and AC symbols.
//
//   const mr::jpeg_codes codes(counts);                                    // words of at most 10 bits, rare ones 16
//   auto file = mr::transcode_jpeg(bytes, {.codes = &codes});
//   const mr::jpeg_codes again = mr::jpeg_codes::from_text(codes.text());  // to keep them: hexadecimal digits
//
// Every symbol of 8-bit baseline JPEGs has a word: 12 DC and 162 AC symbols. So the codes fit every picture, also those
// that were not counted. Within its limits each code is optimal for the counts. The same counts give the same codes. No
// word is all ones. AC symbols that are rare, or never came, have words of up to 16 bits: in 10 bits these alone would
// make the files 3 % larger.
// A decoder that looks up 11 bits at once finds short words at once, and builds its tables once for the whole set.
// Errors: setup_error if the limits are not possible, or a text does not hold such codes. Threads: a value.
// Format: ITU-T T.81, annex C; limited by package-merge (coding/package_merge.hpp).
#pragma once

#include <millrace/image/jpeg/coding/jpeg_symbol_counts.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI {

using detail::jpeg_symbol_counts;   // how often each symbol comes

/// The longest words of jpeg_codes, in bits.
struct jpeg_codes_options {
  unsigned longest_dc = 8;    ///< 4..16
  unsigned longest_ac = 10;   ///< 8..16
  double rare = 0.0001;       ///< AC symbols with less than this share of all have words of up to 16 bits; 0: no symbol
};

/// Huffman codes for luma and chroma.
class jpeg_codes {
 public:
  /// Makes the best codes for these counts. Throws setup_error if a limit is out of its range.
  explicit jpeg_codes(const jpeg_symbol_counts& counts, const jpeg_codes_options& options = {});

  /// Reads what text() wrote. Throws setup_error for any other text.
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

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/jpeg/impl/jpeg_codes.inl>
#endif
