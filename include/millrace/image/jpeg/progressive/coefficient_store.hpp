// Stores the state of a progressive JPEG between scans: the coefficients of a region, and the set of nonzero
// coefficients of every block.
//
//   mr::detail::coefficient_store store;                          // reused for all images
//   store.lay_out(header, region);
//   std::int16_t* dc = store.block(c, row, column);               // null outside the region
//   mr::detail::block_run run = store.run(c, row, from, to);      // adjacent blocks
//   store.for_each_row([](const mr::detail::stored_coefficient_row& r) { /* ... */ });   // for the inverse DCT
//   store.mark_zeroed();                                          // declares that all coefficients are zeros
//
// A row or column is the index of a block in its component. Each component covers the full image and its padding to
// complete MCUs (coding units).
// Memory: 8 bytes for each block, and 144 bytes more for each block of the region. If the coefficient memory exceeds
// `retained_bytes` and an image needs less than half of this memory, a smaller allocation replaces it.
// Errors: throws std::bad_alloc. Threads: not thread-safe; one per decoder.
#pragma once

#include <millrace/image/jpeg/baseline/plane_region.hpp>
#include <millrace/image/jpeg/baseline/segment_slots.hpp>
#include <millrace/image/jpeg/progressive/band_stream.hpp>
#include <millrace/image/jpeg/progressive/progressive_header.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The number of blocks of a component, without the padding to complete MCUs.
struct component_size {
  std::size_t columns, rows;

  component_size(const scan_header& h, std::size_t c) noexcept
      : columns(blocks(h.width * h.component[c].horizontal, h.component[0].horizontal)),
        rows(blocks(h.height * h.component[c].vertical, h.component[0].vertical)) {}

 private:
  static std::size_t blocks(int samples, int of_luma) noexcept {
    return static_cast<std::size_t>((samples + 8 * of_luma - 1) / (8 * of_luma));
  }
};

/// One row of block pairs within the region.
struct stored_coefficient_row {
  std::size_t component, row;   // `row` counts from the first row of the region
  std::size_t pairs;
  std::int16_t* coefficients;
};

class coefficient_store {
 public:
  static constexpr std::size_t retained_bytes = std::size_t{32} << 20;

  void lay_out(const scan_header& h, const mcu_region& region) {
    components_ = static_cast<std::size_t>(h.components);
    std::size_t blocks = 0, pairs = 0;
    for (std::size_t c = 0; c < components_; ++c) {
      layout& l = layout_[c];
      const auto across = static_cast<std::size_t>(h.component[c].horizontal);
      const auto down = static_cast<std::size_t>(h.component[c].vertical);
      l = layout{.columns = static_cast<std::size_t>(region.columns) * across,
                 .first_row = static_cast<std::size_t>(region.first_row) * down,
                 .rows = static_cast<std::size_t>(region.height()) * down,
                 .first_column = static_cast<std::size_t>(region.first_column) * across,
                 .stored_columns = static_cast<std::size_t>(region.width()) * across,
                 .first_set = blocks,
                 .first_pair = pairs};
      blocks += l.columns * static_cast<std::size_t>(region.rows) * down;
      pairs += l.rows * l.row_pairs();
    }
    make_room(blocks, pairs * pair_coefficients);
  }

  bool is_stored(std::size_t c, std::size_t row, std::size_t column) const noexcept {
    const layout& l = layout_[c];
    return row - l.first_row < l.rows && column - l.first_column < l.stored_columns;
  }
  bool row_is_stored(std::size_t c, std::size_t row) const noexcept {
    return row - layout_[c].first_row < layout_[c].rows;
  }
  std::int16_t* block(std::size_t c, std::size_t row, std::size_t column) noexcept {
    return is_stored(c, row, column) ? run(c, row, column, column + 1).block(0) : nullptr;
  }

  std::size_t first_stored_column(std::size_t c) const noexcept { return layout_[c].first_column; }
  std::size_t end_stored_column(std::size_t c) const noexcept {
    return layout_[c].first_column + layout_[c].stored_columns;
  }

  block_run run(std::size_t c, std::size_t row, std::size_t from, std::size_t to) noexcept {
    const layout& l = layout_[c];
    block_run r{.sets = sets_.data() + l.first_set + row * l.columns + from, .count = to - from};
    if (!is_stored(c, row, from)) return r;
    r.pairs = coefficients() + (l.first_pair + (row - l.first_row) * l.row_pairs()) * pair_coefficients;
    r.first = from - l.first_column;
    return r;
  }

  template <class Use>
  void for_each_row(const Use& use) {
    for (std::size_t c = 0; c < components_; ++c) {
      const layout& l = layout_[c];
      for (std::size_t row = 0; row < l.rows; ++row)
        use(stored_coefficient_row{c, row, l.row_pairs(),
                                   coefficients() + (l.first_pair + row * l.row_pairs()) * pair_coefficients});
    }
  }

  /// Clears the padding blocks of MCUs. The coefficients of these blocks may be incomplete, because scans of one
  /// component omit the blocks.
  void clear_filling(const scan_header& h) noexcept {
    for (std::size_t c = 0; c < components_; ++c) {
      const layout& l = layout_[c];
      const component_size size(h, c);
      for (std::size_t row = l.first_row; row < l.first_row + l.rows; ++row)
        for (std::size_t column = row < size.rows ? std::max(size.columns, l.first_column) : l.first_column;
             column < l.first_column + l.stored_columns; ++column)
          for (std::size_t y = 0; y < 8; ++y) std::fill_n(block(c, row, column) + 16 * y, 8, std::int16_t{0});
    }
  }

  void mark_zeroed() noexcept { dirty_ = 0; }

 private:
  struct layout {
    std::size_t columns = 0;                                                     // columns of the full image
    std::size_t first_row = 0, rows = 0, first_column = 0, stored_columns = 0;   // range of the region
    std::size_t first_set = 0, first_pair = 0;

    std::size_t row_pairs() const noexcept { return (stored_columns + 1) / 2; }
  };

  std::int16_t* coefficients() noexcept {
    constexpr std::uintptr_t alignment = 64;
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
    return reinterpret_cast<std::int16_t*>((address + alignment - 1) / alignment * alignment);
  }

  void make_room(std::size_t blocks, std::size_t needed) {
    constexpr std::size_t spare = 32;   // to align the first coefficient
    if (sets_.capacity() * sizeof(coefficient_set) > retained_bytes) sets_ = {};
    sets_.assign(blocks, 0);
    if (needed > size_ || (size_ * sizeof(std::int16_t) > retained_bytes && needed < size_ / 2)) {
      memory_.reset();
      size_ = dirty_ = 0;
      memory_ = std::make_unique<std::int16_t[]>(needed + spare);   // zeros
      size_ = needed;
    }
    std::fill_n(coefficients(), dirty_, std::int16_t{0});
    dirty_ = needed;
  }

  std::size_t components_ = 0;
  std::array<layout, 3> layout_{};
  std::vector<coefficient_set> sets_;
  std::unique_ptr<std::int16_t[]> memory_;
  std::size_t size_ = 0, dirty_ = 0;   // number of allocated coefficients, and of coefficients that may be nonzero
};

// Decodes the DC scans of a progressive JPEG. The DC coefficient is the first coefficient of a block. There are two
// kinds of DC scans. The first scan contains the first bits of the coefficients, as differences from the previous
// block. A later scan contains one more bit of each coefficient.
//
//   const mr::detail::progressive_scan_grid grid(header, scan);
//   mr::detail::dc_scan dc(scan, grid, codes, store);            // codes: one for each component of the scan
//   dc.begin_interval();
//   if (const auto why = dc.decode(bit, end_bit, row, 0, grid.columns); why != none) return why;    // moves `bit`
//
// Blocks outside the region are decoded only because later blocks depend on their differences.
// Threads: not thread-safe; one per decoder. Source: ITU-T T.81 G.1.2.1.

/// The grid of a scan. With several components, its cells are MCUs (coding units). With one component, its cells are
/// the blocks of the component, without padding.
struct progressive_scan_grid {
  std::size_t columns = 0, rows = 0;
  std::array<std::size_t, 3> across{}, down{};   // blocks in an MCU, for each component of the scan

  progressive_scan_grid() = default;
  progressive_scan_grid(const scan_header& h, const progressive_scan& scan) noexcept {
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

  dc_scan(const progressive_scan& scan, const progressive_scan_grid& grid, const tables& t,
          coefficient_store& store) noexcept
      : scan_(scan), grid_(grid), tables_(t), store_(store) {}

  void begin_interval() noexcept { predictor_ = {}; }

  /// Decodes the grid cells [from, to) of one row. Returns `damaged` if the position moves beyond `end_bit`.
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
      const std::uint64_t window = bit_window_at(bit);
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
        const auto refined = static_cast<int>(bit_window_at(bit) >> 63 << scan_.low);
        if (block != nullptr) block[0] = static_cast<std::int16_t>(block[0] | refined);
        ++bit;
        return true;
      });
    }
    position = bit;
    return true;
  }

  const progressive_scan& scan_;
  const progressive_scan_grid& grid_;
  const tables& tables_;
  coefficient_store& store_;
  std::array<int, 3> predictor_{};
  bool wild_ = false;
};

}}}   // namespace millrace::detail
