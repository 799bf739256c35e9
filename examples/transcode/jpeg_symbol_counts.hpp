// Counts the Huffman symbols of JPEGs, from which codes for a set of files are computed.
//
//   transcode::jpeg_symbol_counts counts;
//   for (const auto& file : files) transcode::jpeg_transcoder(file).count_symbols(counts);
//   const transcode::jpeg_codes codes(counts);                                           // see jpeg_codes.hpp
//
// The first index is 0 for luma, gray and components of other colors, and 1 for the chroma of YCbCr and YCCK. A DC
// symbol is the size of a difference in bits. An AC symbol is 16 times the number of zeros before a coefficient, plus
// its size.
// Errors: none. Threads: a value. The order in which counts of several threads are added does not matter.
// Source: ITU-T T.81, F.1.2.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace transcode {

/// The frequency of each symbol in files that share their codes.
struct jpeg_symbol_counts {
  static constexpr std::size_t tables = 2, dc_symbols = 12, ac_symbols = 256;

  std::array<std::array<std::uint64_t, dc_symbols>, tables> dc{};   ///< by the size of the difference
  std::array<std::array<std::uint64_t, ac_symbols>, tables> ac{};   ///< by zeros * 16 + size
  std::uint64_t pictures = 0;

  /// Adds the counts of other files.
  jpeg_symbol_counts& operator+=(const jpeg_symbol_counts& more) noexcept {
    for (std::size_t t = 0; t < tables; ++t) {
      for (std::size_t s = 0; s < dc_symbols; ++s) dc[t][s] += more.dc[t][s];
      for (std::size_t s = 0; s < ac_symbols; ++s) ac[t][s] += more.ac[t][s];
    }
    pictures += more.pictures;
    return *this;
  }
  friend bool operator==(const jpeg_symbol_counts&, const jpeg_symbol_counts&) = default;
};

}   // namespace transcode
