// Counts the symbols that a baseline JPEG of given coefficients has, for any restart interval, and the bytes it takes.
//
//   mr::detail::jpeg_symbols symbols(coefficients);
//   symbols.add_to(counts, 4);                             // with a restart marker behind every four MCUs
//   const double more = symbols.coded_bytes(4) - symbols.coded_bytes(0);
//   const unsigned interval = symbols.interval_within({.growth = 0.02, .shortest = 4});
//
// Restarts change the sizes of DC differences alone. So AC symbols are counted once, and DC terms are kept.
// Bytes are those of coded data with codes of its own, which take no more than 16 bits. They are not exact: a byte of
// ones takes two bytes, which is not counted, and the bits before a marker are 3.5 on average.
// Lifetime: needs the coefficients in the constructor only. Memory: two bytes for each block.
// Errors: data_error for coefficients that baseline coding cannot hold. Threads: const members may run at once.
// Format: ITU-T T.81, F.1.2.
#pragma once

#include <millrace/image/jpeg/coding/package_merge.hpp>
#include <millrace/image/jpeg/coding/jpeg_symbol_counts.hpp>
#include <millrace/image/jpeg/libjpeg/jpeg_coefficients.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class jpeg_symbols {
 public:
  explicit jpeg_symbols(jpeg_coefficients& from);

  /// Adds the symbols of a file with this restart interval, in MCUs; 0: none.
  void add_to(jpeg_symbol_counts& counts, unsigned restart_interval) const;

  /// Returns about how many bytes the coded data take.
  double coded_bytes(unsigned restart_interval) const;

  struct interval_limits {
    double growth = 0;       ///< most, as a share of the coded data
    std::size_t shortest = 1;
  };
  /// Returns the shortest interval that grows the coded data by no more than the limit. The lengths it tries are a
  /// quarter apart. 0: there is none, or the file has a scan for each component.
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

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/jpeg/libjpeg/impl/jpeg_symbols.inl>
#endif
