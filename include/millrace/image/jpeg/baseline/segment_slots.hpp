// Lists the blocks of a segment in stream order, with the addresses of their coefficients. A segment is several
// consecutive MCUs (coding units of a JPEG). A stored segment is within one row. A slot describes one block.
//
//   mr::detail::segment_slots slots;
//   if (!slots.are_of(header, tables)) slots.lay_out(header, tables);
//   stream.begin_segment(slots.stored(), mcus * slots.blocks_of_mcu(), true, stop);   // or slots.skipped(), ..., false
//   // ... decode the segment
//   slots.for_each_row(mcus, [](const mr::detail::segment_slot_pairs& r) { /* ... */ });    // for the inverse DCT
//
// The coefficients must be zero before each segment. lay_out() clears all coefficients. The inverse DCTs clear the
// coefficients that they transform. The caller must clear all other coefficients. A caller that stops in the middle of
// a segment must call lay_out() again.
// Threads: not thread-safe; one per job.
#pragma once

#include <millrace/image/jpeg/baseline/block_stream.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

constexpr std::size_t stored_blocks = 24, skipped_blocks = 96, max_mcu_blocks = 6;
/// The maximum size of a coded block: 27 bits for the DC coefficient, and 26 bits for each of the 63 AC coefficients.
constexpr std::size_t max_block_bytes = 209;

/// One block row of a component in a segment. Adjacent blocks are stored in pairs.
struct segment_slot_pairs {
  std::size_t component;
  int block_row;   // index of the row of blocks within the row of MCUs, from 0
  std::size_t count;
  std::int16_t* coefficients;   // coefficients of the first pair; the next pairs follow
};

class segment_slots {
 public:
  using tables_of_components = std::array<std::shared_ptr<const component_tables>, 3>;

  /// Returns whether the slots are valid for images with this header and these tables. Returns false after a move,
  /// because the slots still point into the moved-from object.
  bool are_of(const scan_header& h, const tables_of_components& tables) const noexcept {
    bool same = components_ == static_cast<std::size_t>(h.components) && row_[0][0] == coefficients_.data();
    for (std::size_t c = 0; same && c < components_; ++c)
      same = tables_[c] == tables[c].get() && sampling_[c].horizontal == h.component[c].horizontal &&
             sampling_[c].vertical == h.component[c].vertical;
    return same;
  }

  void lay_out(const scan_header& h, const tables_of_components& tables) {
    coefficients_.fill(0);
    blocks_ = 0;
    const auto count = static_cast<std::size_t>(h.components);
    for (std::size_t c = 0; c < count; ++c) {
      sampling_[c] = {h.component[c].horizontal, h.component[c].vertical};
      tables_[c] = tables[c].get();
      blocks_ += static_cast<std::size_t>(sampling_[c].horizontal * sampling_[c].vertical);
    }
    components_ = count;
    std::size_t slot = 0, pairs = 0;
    for (std::size_t c = 0; c < count; ++c)
      for (std::size_t y = 0; y < static_cast<std::size_t>(sampling_[c].vertical); ++y) {
        row_[c][y] = coefficients_.data() + pairs * pair_coefficients;
        pairs += row_pairs(c, stored_mcus());
      }
    std::array<std::size_t, 3> listed{};
    for (std::size_t m = 0; m < skipped_mcus(); ++m)
      for (std::size_t c = 0; c < count; ++c)
        for (int y = 0; y < sampling_[c].vertical; ++y)
          for (int x = 0; x < sampling_[c].horizontal; ++x, ++slot) {
            component_of_[slot] = static_cast<std::uint8_t>(c);
            skipped_[slot] = {tables[c]->ac_skip.data(), nullptr, coefficients_.data(), tables[c].get(), 0};
            if (slot >= stored_mcus() * blocks_) continue;
            const std::size_t column = m * static_cast<std::size_t>(sampling_[c].horizontal) +
                                       static_cast<std::size_t>(x);
            std::int16_t* const block = row_[c][static_cast<std::size_t>(y)] + column / 2 * pair_coefficients +
                                        column % 2 * right_block;
            stored_[slot] = {tables[c]->ac.data(), nullptr, block, tables[c].get(), 0};
            blocks_of_[c][listed[c]++] = block;
          }
    for (std::size_t i = 0; i < skipped_mcus() * blocks_; ++i)
      skipped_[i].next_dc = skipped_[(i + 1) % blocks_].tables->dc_skip.data();
    for (std::size_t i = 0; i < stored_mcus() * blocks_; ++i)
      stored_[i].next_dc = stored_[(i + 1) % blocks_].tables->dc.data();
    // A stream may access the slot after the last slot of a segment, so that slot must be valid. Writes through that
    // slot do not affect the result.
    stored_[stored_mcus() * blocks_] = stored_[0];
    skipped_[skipped_mcus() * blocks_] = skipped_[0];
  }

  std::size_t blocks_of_mcu() const noexcept { return blocks_; }
  std::size_t stored_mcus() const noexcept { return stored_blocks / blocks_; }
  std::size_t skipped_mcus() const noexcept { return skipped_blocks / blocks_; }
  block_slot* stored() noexcept { return stored_.data(); }
  block_slot* skipped() noexcept { return skipped_.data(); }
  std::size_t component_of(std::size_t block) const noexcept { return component_of_[block]; }

  /// Returns a component's stored blocks in the first `mcus` MCUs, in stream order.
  std::span<std::int16_t* const> stored_of(std::size_t component, std::size_t mcus) const noexcept {
    const sampling s = sampling_[component];
    return std::span(blocks_of_[component]).first(mcus * static_cast<std::size_t>(s.horizontal * s.vertical));
  }

  /// Calls use(segment_slot_pairs) for each row of blocks of the first `mcus` stored MCUs. If a row has an odd number
  /// of blocks, its last pair contains a block of zeros.
  template <class Use>
  void for_each_row(std::size_t mcus, const Use& use) const {
    for (std::size_t c = 0; c < components_; ++c)
      for (int y = 0; y < sampling_[c].vertical; ++y)
        use(segment_slot_pairs{c, y, row_pairs(c, mcus), row_[c][static_cast<std::size_t>(y)]});
  }

 private:
  struct sampling {
    int horizontal, vertical;
  };

  std::size_t row_pairs(std::size_t component, std::size_t mcus) const noexcept {
    return (mcus * static_cast<std::size_t>(sampling_[component].horizontal) + 1) / 2;
  }

  std::size_t components_ = 0, blocks_ = 1;
  std::array<sampling, 3> sampling_{};
  std::array<const component_tables*, 3> tables_{};
  std::array<std::array<std::int16_t*, 2>, 3> row_{};   // the first pair of each row of blocks
  std::array<std::array<std::int16_t*, stored_blocks>, 3> blocks_of_{};
  std::array<std::uint8_t, skipped_blocks> component_of_{};
  std::array<block_slot, stored_blocks + 1> stored_{};
  std::array<block_slot, skipped_blocks + 1> skipped_{};
  alignas(64) std::array<std::int16_t, stored_blocks / 2 * pair_coefficients> coefficients_{};
};

}}}   // namespace millrace::detail
