// Decodes the DC scans of a progressive JPEG: the first bits, predicted from block to block, and one bit more.
//
//   mr::detail::dc_scan dc(header, scan, tables, store);        // tables: one for each component of the scan
//   dc.begin_interval();
//   mr::detail::jpeg_refusal why = dc.decode(data, bit, first_mcu, count);      // moves `bit`
//
// Blocks outside of the region are decoded for the prediction's sake, and their further bits are passed over.
// Threads: one job's own. Source: ITU-T T.81 G.1.2.1.
#pragma once

#include <millrace/image/progressive/band_stream.hpp>
#include <millrace/image/progressive/coefficient_store.hpp>
#include <millrace/image/progressive/progressive_header.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The grid that a scan goes through: MCUs of several components, or the blocks of one, without those that fill up.
struct scan_grid {
  std::size_t columns = 0, rows = 0;
  std::array<std::size_t, 3> across{}, down{};   // blocks of each component of the scan in an MCU

  scan_grid() = default;
  scan_grid(const scan_header& h, const progressive_scan& scan) noexcept {
    if (scan.components == 1) {
      const component_size only(h, scan.component[0]);
      columns = only.columns;
      rows = only.rows;
      across[0] = down[0] = 1;
      return;
    }
    const mcu_region all(h, {});
    columns = static_cast<std::size_t>(all.columns);
    rows = static_cast<std::size_t>(all.rows);
    for (std::size_t i = 0; i < scan.components; ++i) {
      across[i] = static_cast<std::size_t>(h.component[scan.component[i]].horizontal);
      down[i] = static_cast<std::size_t>(h.component[scan.component[i]].vertical);
    }
  }
};

class dc_scan {
 public:
  using tables = std::array<band_table, 3>;

  dc_scan(const progressive_scan& scan, const scan_grid& grid, const tables& t, coefficient_store& store) noexcept
      : scan_(scan), grid_(grid), tables_(t), store_(store) {}

  void begin_interval() noexcept { predictor_ = {}; }

  /// Decodes MCUs of one row. Damage that `end_bit` shows is noticed behind them.
  jpeg_refusal decode(std::uintptr_t& bit, std::uintptr_t end_bit, std::size_t row, std::size_t from, std::size_t to) {
    constexpr std::size_t at_once = 512;   // so that damaged data are left before the memory behind them
    for (std::size_t at = from; at < to; at += at_once) {
      const std::size_t end = std::min(at + at_once, to);
      const bool whole = scan_.refines ? refine(bit, row, at, end) : decode_first(bit, row, at, end);
      if (!whole || bit > end_bit) return jpeg_refusal::damaged;
      for (const int p : predictor_)
        if (p > 32'767 || p < -32'767) return jpeg_refusal::wild_values;
    }
    return wild_ ? jpeg_refusal::wild_values : jpeg_refusal::none;
  }

 private:
  template <class Use>
  bool for_each_block(std::size_t row, std::size_t from, std::size_t to, const Use& use) {
    for (std::size_t column = from; column < to; ++column)
      for (std::size_t i = 0; i < scan_.components; ++i)
        for (std::size_t y = 0; y < grid_.down[i]; ++y)
          for (std::size_t x = 0; x < grid_.across[i]; ++x)
            if (!use(i, store_.block(scan_.component[i], row * grid_.down[i] + y, column * grid_.across[i] + x)))
              return false;
    return true;
  }

  bool decode_first(std::uintptr_t& bit, std::size_t row, std::size_t from, std::size_t to) {
    return for_each_block(row, from, to, [&](std::size_t i, std::int16_t* block) {
      const std::uint64_t window = window_at(bit);
      band_entry e = tables_[i][window];
      if (e.kind == band_entry::long_word) e = tables_[i].find(window);
      if (e.kind == band_entry::odd) return false;
      predictor_[i] += value_of(window, e);
      bit += e.bits;
      if (block == nullptr) return true;
      const int value = predictor_[i] * (1 << scan_.low);
      wild_ = wild_ || value > 32'767 || value < -32'768;
      block[0] = static_cast<std::int16_t>(value);
      return true;
    });
  }

  bool refine(std::uintptr_t& bit, std::size_t row, std::size_t from, std::size_t to) {
    return for_each_block(row, from, to, [&](std::size_t, std::int16_t* block) {
      if (block != nullptr) block[0] = static_cast<std::int16_t>(block[0] | window_at(bit) >> 63 << scan_.low);
      ++bit;
      return true;
    });
  }

  const progressive_scan& scan_;
  const scan_grid& grid_;
  const tables& tables_;
  coefficient_store& store_;
  std::array<int, 3> predictor_{};
  bool wild_ = false;
};

}}}  // namespace millrace::detail
