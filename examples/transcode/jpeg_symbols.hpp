// Counts the symbols of a baseline JPEG with given coefficients, for any restart interval, and estimates its size.
//
//   transcode::jpeg_symbols symbols(coefficients);
//   symbols.add_to(counts, 4);                             // with a restart marker after every four MCUs
//   const double more = symbols.coded_bytes(4) - symbols.coded_bytes(0);
//   const unsigned interval = symbols.interval_within({.growth = 0.02, .shortest = 4});
//
// Restarts change the sizes of DC differences only. AC symbols are therefore counted once, and DC terms are stored. The
// size is that of coded data with optimal codes of at most 16 bits. It is an estimate: bytes of ones, which need two
// bytes, are not counted, and the bits before a marker are 3.5 on average.
// Lifetime: only the constructor uses the coefficients. Memory: two bytes for each block.
// Errors: data_error for coefficients that baseline coding cannot represent. Threads: const members are concurrent.
// Source: ITU-T T.81, F.1.2.
#pragma once

#include "jpeg_coefficients.hpp"
#include "jpeg_symbol_counts.hpp"
#include "package_merge.hpp"

#include <millrace/base/error.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <millrace/simd/precise_begin.inc>

namespace transcode {

class jpeg_symbols {
 public:
  explicit jpeg_symbols(jpeg_coefficients& from);

  /// Adds the symbols of a file with this restart interval, in MCUs; 0: none.
  void add_to(jpeg_symbol_counts& counts, unsigned restart_interval) const;

  /// Returns an estimate of the size of the coded data.
  double coded_bytes(unsigned restart_interval) const;

  struct interval_limits {
    double growth = 0;   ///< limit, as a share of the coded data
    std::size_t shortest = 1;
  };
  /// Returns the shortest interval with which the coded data grow by at most the limit; candidates differ by a quarter.
  /// 0: there is none, or the file has a scan for each component.
  unsigned interval_within(const interval_limits& limits) const;

 private:
  struct component_terms {
    std::size_t table = 0, blocks_in_mcu = 1;
    std::vector<std::int16_t> dc{};   // of each block, in the order of the scan
  };

  /// Returns false if a difference is too large for a baseline file.
  bool count_dc(jpeg_symbol_counts& counts, unsigned restart_interval) const noexcept;
  void count_ac(const JCOEF* block, std::size_t table) noexcept;

  std::vector<component_terms> components_;
  jpeg_symbol_counts ac_{};   // its dc is not used
  double ac_bits_ = 0;        // words and magnitudes
  std::size_t mcus_ = 0;
  bool interleaved_ = true;   // one scan of all components
  bool fits_ = true;          // into a baseline file
};

/// The position of each coefficient in its block, in coding order: T.81, figure A.6.
inline constexpr std::array<std::uint8_t, 64> zigzag_places{
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/// Returns the size of a number in bits, as symbols encode it.
constexpr unsigned size_in_bits(int value) noexcept {
  return static_cast<unsigned>(std::bit_width(static_cast<unsigned>(value < 0 ? -value : value)));
}

/// Returns the bits of all words and magnitudes in an optimal code, in which an unused symbol has the word of ones.
inline double bits_with_optimal_code(std::span<const std::uint64_t> counts, unsigned size_mask) {
  std::vector<std::uint64_t> weights;
  double bits = 0;
  for (unsigned symbol = 0; symbol < counts.size(); ++symbol) {
    if (counts[symbol] == 0) continue;
    weights.push_back(counts[symbol]);
    bits += static_cast<double>(counts[symbol] * (symbol & size_mask));
  }
  if (weights.empty()) return 0;
  weights.push_back(0);
  std::vector<std::uint8_t> lengths(weights.size());
  package_merge(weights, std::vector<std::uint8_t>(weights.size(), 16), lengths);
  for (std::size_t i = 0; i < weights.size(); ++i) bits += static_cast<double>(weights[i] * lengths[i]);
  return bits;
}

inline jpeg_symbols::jpeg_symbols(jpeg_coefficients& from)
    : components_(static_cast<std::size_t>(from.components())),
      mcus_(from.mcus_per_row() * from.mcu_rows()),
      interleaved_(from.fits_one_scan()) {
  for (std::size_t c = 0; c < components_.size(); ++c) {
    auto& component = components_[c];
    component.table = from.is_chroma(static_cast<int>(c)) ? 1 : 0;
    component.blocks_in_mcu = interleaved_ ? from.blocks_in_mcu(static_cast<int>(c)) : 1;
    component.dc.reserve(mcus_ * from.blocks_in_mcu(static_cast<int>(c)));
  }
  const bool complete = from.for_each_block([&](int c, const JCOEF* block) noexcept {
    auto& component = components_[static_cast<std::size_t>(c)];
    if (!block) {   // the writer of libjpeg repeats the DC term, without AC terms
      component.dc.push_back(component.dc.back());
      ++ac_.ac[component.table][0];
      return;
    }
    component.dc.push_back(block[0]);
    count_ac(block, component.table);
  });
  if (!complete)
    throw millrace::io_error("libjpeg does not provide the coefficients of an image", "Free memory", {.stage = "jpeg"});
  jpeg_symbol_counts counts;
  add_to(counts, 0);   // for its errors
  for (const auto& table : ac_.ac) ac_bits_ += bits_with_optimal_code(table, 15);
}

inline void jpeg_symbols::count_ac(const JCOEF* block, std::size_t table) noexcept {
  auto& counts = ac_.ac[table];
  unsigned zeros = 0;
  for (std::size_t k = 1; k < zigzag_places.size(); ++k) {
    const int value = block[zigzag_places[k]];
    if (value == 0) {
      ++zeros;
      continue;
    }
    for (; zeros > 15; zeros -= 16) ++counts[0xf0];
    const unsigned size = size_in_bits(value);
    constexpr unsigned largest_size = 10;
    if (size <= largest_size) ++counts[zeros << 4 | size];
    else fits_ = false;
    zeros = 0;
  }
  if (zeros > 0) ++counts[0];
}

inline bool jpeg_symbols::count_dc(jpeg_symbol_counts& counts, unsigned restart_interval) const noexcept {
  bool fits = true;
  for (const auto& component : components_) {
    const std::size_t blocks = component.dc.size();
    const std::size_t together = restart_interval == 0 ? blocks : restart_interval * component.blocks_in_mcu;
    auto& sizes = counts.dc[component.table];
    for (std::size_t begin = 0; begin < blocks; begin += together) {
      int before = 0;
      for (std::size_t i = begin; i < std::min(blocks, begin + together); ++i) {
        const unsigned size = size_in_bits(component.dc[i] - before);
        before = component.dc[i];
        if (size < sizes.size()) ++sizes[size];
        else fits = false;
      }
    }
  }
  return fits;
}

inline void jpeg_symbols::add_to(jpeg_symbol_counts& counts, unsigned restart_interval) const {
  if (!count_dc(counts, restart_interval) || !fits_)
    throw millrace::data_error("the image cannot be written as a baseline JPEG: a coefficient is too large",
                               "Keep the original file", {.stage = "jpeg"});
  for (std::size_t t = 0; t < counts.ac.size(); ++t)
    for (std::size_t s = 0; s < counts.ac[t].size(); ++s) counts.ac[t][s] += ac_.ac[t][s];
  ++counts.pictures;
}

inline double jpeg_symbols::coded_bytes(unsigned restart_interval) const {
  jpeg_symbol_counts counts;
  count_dc(counts, restart_interval);
  double bits = ac_bits_;
  for (const auto& table : counts.dc) bits += bits_with_optimal_code(table, 15);
  if (restart_interval == 0) return bits / 8;
  constexpr double bits_of_restart = 16 + 3.5;
  for (const auto& component : components_) {
    const std::size_t mcus = component.dc.size() / component.blocks_in_mcu;
    bits += static_cast<double>((mcus - 1) / restart_interval) * bits_of_restart;
    if (interleaved_) break;
  }
  return bits / 8;
}

inline unsigned jpeg_symbols::interval_within(const interval_limits& limits) const {
  if (!interleaved_) return 0;
  const double plain = coded_bytes(0), most = plain * (1 + limits.growth);
  constexpr std::size_t longest = 65'535;
  for (std::size_t interval = limits.shortest; interval < std::min(mcus_, longest + 1);
       interval += std::max<std::size_t>(1, interval / 4)) {
    const auto candidate = static_cast<unsigned>(interval);
    if (coded_bytes(candidate) <= most) return candidate;
  }
  return 0;
}

}   // namespace transcode

#include <millrace/simd/precise_end.inc>
