// Stores the state of a progressive JPEG between scans: the coefficients of a region, and the set of nonzero
// coefficients of every block.
//
//   mr::detail::coefficient_store store;                          // reused for all images
//   store.lay_out(header, region);
//   std::int16_t* dc = store.block(c, row, column);               // null outside the region
//   mr::detail::block_run run = store.run(c, row, from, to);      // adjacent blocks
//   store.for_each_row([](const mr::detail::stored_row& r) { /* ... */ });   // for the inverse DCT
//   store.mark_zeroed();                                          // declares that all coefficients are zeros
//
// Rows and columns count a component's blocks in the full image, padded to complete MCUs (coding units).
// Memory: 8 bytes for each block, and 144 bytes more for each block of the region. Memory beyond `retained_bytes` is
// freed when the next smaller image arrives.
// Errors: throws std::bad_alloc. Threads: not thread-safe; one per decoder.
#pragma once

#include <millrace/image/jpeg/baseline/plane_region.hpp>
#include <millrace/image/jpeg/progressive/band_stream.hpp>

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
struct stored_row {
  std::size_t component, row;   // indices in the region
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
        use(stored_row{c, row, l.row_pairs(),
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

}}}   // namespace millrace::detail
