// Decodes the DC scans of a progressive JPEG. The DC coefficient is the first coefficient of a block. There are two
// kinds of DC scans. The first scan contains the first bits of the coefficients, as differences from the previous
// block. A later scan contains one more bit of each coefficient.
//
//   const mr::detail::scan_grid grid(header, scan);
//   mr::detail::dc_scan dc(scan, grid, codes, store);            // codes: one for each component of the scan
//   dc.begin_interval();
//   if (const auto why = dc.decode(bit, end_bit, row, 0, grid.columns); why != none) return why;    // moves `bit`
//
// Blocks outside the region are decoded only because later blocks depend on their differences.
// Threads: not thread-safe; one per decoder. Source: ITU-T T.81 G.1.2.1.
#pragma once

#include <millrace/image/jpeg/baseline/segment_slots.hpp>
#include <millrace/image/jpeg/progressive/band_stream.hpp>
#include <millrace/image/jpeg/progressive/coefficient_store.hpp>
#include <millrace/image/jpeg/progressive/progressive_header.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The grid of a scan. With several components, its cells are MCUs (coding units). With one component, its cells are
/// the blocks of the component, without padding.
struct scan_grid {
  std::size_t columns = 0, rows = 0;
  std::array<std::size_t, 3> across{}, down{};   // blocks in an MCU, for each component of the scan

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

  /// Decodes MCUs of one row, and afterwards checks that the position is not beyond `end_bit`.
  jpeg_refusal decode(std::uintptr_t& bit, std::uintptr_t end_bit, std::size_t row, std::size_t from, std::size_t to) {
    constexpr std::size_t at_once = 512;   // so that damaged data cannot cause reads beyond the readable memory
    for (std::size_t at = from; at < to; at += at_once) {
      const std::size_t end = std::min(at + at_once, to);
      const bool intact = scan_.refines ? refine(bit, row, at, end) : decode_first(bit, row, at, end);
      if (!intact || bit > end_bit) return jpeg_refusal::damaged;
      for (const int p : predictor_)
        if (p > 32'767 || p < -32'767) return jpeg_refusal::wild_values;
    }
    return wild_ ? jpeg_refusal::wild_values : jpeg_refusal::none;
  }

 private:
  /// Calls use(component, block) for each block. `component` is an index in the scan. `block` is null outside the
  /// region.
  template <class Use>
  bool for_each_block(std::size_t row, std::size_t from, std::size_t to, const Use& use) {
    struct block_row {
      std::size_t component, across, first, end;   // [first, end) is within the region
      block_run stored;
    };
    std::array<block_row, max_mcu_blocks> rows;
    std::size_t count = 0;
    for (std::size_t i = 0; i < scan_.components; ++i)
      for (std::size_t y = 0; y < grid_.down[i]; ++y) {
        const std::size_t c = scan_.component[i], block_row_number = row * grid_.down[i] + y;
        auto& r = rows[count++] = {i, grid_.across[i], 0, 0, {}};
        if (!store_.row_is_stored(c, block_row_number)) continue;
        r.first = store_.first_stored_column(c);
        r.end = store_.end_stored_column(c);
        r.stored = store_.run(c, block_row_number, r.first, r.end);
      }
    for (std::size_t column = from; column < to; ++column)
      for (std::size_t n = 0; n < count; ++n) {
        const block_row& r = rows[n];
        for (std::size_t x = column * r.across; x < (column + 1) * r.across; ++x) {
          std::int16_t* const block = x >= r.first && x < r.end ? r.stored.block(x - r.first) : nullptr;
          if (!use(r.component, block)) return false;
        }
      }
    return true;
  }

  bool decode_first(std::uintptr_t& position, std::size_t row, std::size_t from, std::size_t to) {
    std::uintptr_t bit = position;
    std::array<int, 3> predictor = predictor_;
    int outside = 0;
    const bool intact = for_each_block(row, from, to, [&](std::size_t i, std::int16_t* block) {
      const std::uint64_t window = window_at(bit);
      band_entry e = tables_[i][window];
      if (__builtin_expect(e.kind > band_entry::coefficient, 0)) {
        e = tables_[i].find(window);
        if (e.kind == band_entry::invalid) return false;
      }
      predictor[i] += value_of(window, e);
      bit += e.bits;
      if (block == nullptr) return true;
      const int value = predictor[i] * (1 << scan_.low);
      outside |= value ^ value >> 31;   // at least 32768 if the value has more than 16 bits
      block[0] = static_cast<std::int16_t>(value);
      return true;
    });
    position = bit;
    predictor_ = predictor;
    wild_ = wild_ || outside > 32'767;
    return intact;
  }

  bool refine(std::uintptr_t& position, std::size_t row, std::size_t from, std::size_t to) {
    std::uintptr_t bit = position;
    bool stored = false;
    for (std::size_t i = 0; i < scan_.components; ++i)
      stored = stored || store_.row_is_stored(scan_.component[i], row * grid_.down[i]);
    if (!stored) {
      for (std::size_t i = 0; i < scan_.components; ++i) bit += (to - from) * grid_.across[i] * grid_.down[i];
    } else {
      for_each_block(row, from, to, [&](std::size_t, std::int16_t* block) {
        const auto refined = static_cast<int>(window_at(bit) >> 63 << scan_.low);
        if (block != nullptr) block[0] = static_cast<std::int16_t>(block[0] | refined);
        ++bit;
        return true;
      });
    }
    position = bit;
    return true;
  }

  const progressive_scan& scan_;
  const scan_grid& grid_;
  const tables& tables_;
  coefficient_store& store_;
  std::array<int, 3> predictor_{};
  bool wild_ = false;
};

}}}   // namespace millrace::detail
