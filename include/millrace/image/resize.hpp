// Antialiased bilinear resize of RGBX rows as they come out of the decoder, into one [height, width, 3] u8 picture.
//
//   mr::detail::resizer r;                                   // kept from picture to picture
//   r.start({.rows = y, .columns = x}, pixels);              // plan axes in source pixels
//   r.set_source(r.columns().source_begin(), width);         // the rows to come begin at this source column
//   while (r.wants_rows()) { fill(r.next_row()); r.commit_row(); }   // from rows().source_begin() on
//
// Vertical first, from a ring of at most 47 source rows (for filters of more than 32 taps sums of 32 rows are kept),
// then horizontal with the flip in the order of the weights. Within one level of the same resize in real numbers.
// `next_row` and `commit_row` never throw and allocate nothing. Threads: one at a time.
#pragma once

#include <millrace/image/resize_kernels.hpp>
#include <millrace/image/resize_plan.hpp>
#include <millrace/image/tap_table.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::inline MILLRACE_ABI {
namespace detail {

template <class Kernels>
class basic_resizer {
 public:
  /// `pixels` has rows.count * columns.count * 3 bytes and is good until the last row is committed.
  void start(const resize_plan& plan, std::span<std::uint8_t> pixels) {
    rows_.build(plan.rows);
    columns_.build(plan.columns);
    plan_ = plan;
    pixels_ = pixels.data();
    const std::size_t outputs = columns_.outputs();
    column_pairs_ = 0;
    for (std::size_t o = 0; o < outputs; ++o) {
      const std::size_t odd = (columns_.first(o) - columns_.source_begin()) % 2;
      const std::size_t pairs = (odd + columns_.count(o) + 1) / 2;
      if (pairs > column_pairs_) column_pairs_ = pairs;
    }
    column_first_.resize(outputs);
    column_weights_.assign(outputs * column_pairs_, 0);
    for (std::size_t o = 0; o < outputs; ++o) {
      const std::size_t from = plan.columns.flipped ? outputs - 1 - o : o;
      const std::size_t begin = columns_.first(from) - columns_.source_begin();
      column_first_[o] = static_cast<std::uint32_t>(begin / 2);
      for (std::size_t k = 0; k < columns_.count(from); ++k) {
        const std::size_t at = begin % 2 + k;
        const auto weight = static_cast<std::uint32_t>(columns_.weights(from)[k]);
        column_weights_[o * column_pairs_ + at / 2] |= weight << (at % 2 * 16);
      }
    }
    if (plan.transposed) line_.resize(outputs * 3);
  }

  const tap_table& rows() const noexcept { return rows_; }
  const tap_table& columns() const noexcept { return columns_; }

  /// The rows to come hold `width` pixels and begin at source column `left`.
  void set_source(std::size_t left, std::size_t width) {
    const std::size_t used = columns_.source_end() - columns_.source_begin();
    groups_ = (used + 3) / 4;
    skip_bytes_ = (columns_.source_begin() - left) * 4;
    row_bytes_ = width * 4 + 16;   // the last group may read past the last pixel
    in_pieces_ = rows_.max_count() > largest_ring;
    ring_rows_ = in_pieces_ ? largest_ring : rows_.max_count() + rows_at_once - 1;
    if (ring_.size() < ring_rows_ * row_bytes_) ring_.resize(ring_rows_ * row_bytes_);
    // Outputs may name pairs beyond the row, with weight 0.
    if (blended_.size() < groups_ * 16 + column_pairs_ * 8) blended_.resize(groups_ * 16 + column_pairs_ * 8);
    if (in_pieces_ && sums_.size() < open_outputs * groups_ * 16) sums_.resize(open_outputs * groups_ * 16);
    begin_row_ = summed_to_ = next_row_ = rows_.source_begin();
    next_output_ = 0;
  }

  bool wants_rows() const noexcept { return next_output_ < rows_.outputs(); }

  /// Where the next source row goes: `width` RGBX pixels.
  std::uint8_t* next_row() noexcept { return ring_row(next_row_); }

  void commit_row() noexcept {
    ++next_row_;
    if ((next_row_ - begin_row_) % rows_at_once != 0 && next_row_ != rows_.source_end()) return;
    while (wants_rows() && rows_.end(next_output_) <= next_row_) finish_output();
    if (in_pieces_ && next_row_ - summed_to_ == largest_ring) {
      for (std::size_t o = next_output_; o < rows_.outputs() && rows_.first(o) < next_row_; ++o)
        sum_up(o, next_row_, false);
      summed_to_ = next_row_;
    }
  }

 private:
  static constexpr std::size_t largest_ring = 32;
  /// Going to and fro between decoder and resize for each row made a picture cost a fifth more.
  static constexpr std::size_t rows_at_once = 16;
  static_assert(largest_ring % rows_at_once == 0);
  /// Outputs that can be under way at once: with more taps than the ring has rows the picture shrinks, and at most
  /// three triangles overlap.
  static constexpr std::size_t open_outputs = 4;

  std::uint8_t* ring_row(std::size_t row) noexcept {
    return ring_.data() + (row - begin_row_) % ring_rows_ * row_bytes_;
  }

  /// Adds the rows [.., end) of output `o` that are in the ring and not yet in its sum.
  void sum_up(std::size_t o, std::size_t end, bool finishes) noexcept {
    const bool resumes = in_pieces_ && rows_.first(o) < summed_to_;
    const std::size_t begin = resumes ? summed_to_ : rows_.first(o);
    const std::int16_t* weights = rows_.weights(o) + (begin - rows_.first(o));
    const std::uint8_t* rows[largest_ring];
    std::uint32_t pairs[largest_ring / 2];
    const std::size_t count = end - begin;
    for (std::size_t k = 0; k < count; k += 2) {
      const bool has_partner = k + 1 < count;
      rows[k] = ring_row(begin + k) + skip_bytes_;
      rows[k + 1] = has_partner ? ring_row(begin + k + 1) + skip_bytes_ : rows[k];
      pairs[k / 2] = weight_pair(weights[k], has_partner ? weights[k + 1] : 0);
    }
    Kernels::blend_rows({.rows = rows, .weights = pairs, .pairs = (count + 1) / 2, .groups = groups_,
                         .sums = in_pieces_ ? sums_.data() + o % open_outputs * groups_ * 16 : nullptr,
                         .resumes = resumes, .finishes = finishes, .blended = blended_.data()});
  }

  void finish_output() noexcept {
    sum_up(next_output_, rows_.end(next_output_), true);
    const std::size_t outputs = columns_.outputs();
    const std::size_t row = plan_.rows.flipped ? rows_.outputs() - 1 - next_output_ : next_output_;
    std::uint8_t* rgb = plan_.transposed ? line_.data() : pixels_ + row * outputs * 3;
    Kernels::blend_columns({.blended = blended_.data(), .first_pairs = column_first_.data(),
                            .weights = column_weights_.data(), .pairs = column_pairs_, .outputs = outputs, .rgb = rgb});
    if (plan_.transposed) {
      const std::size_t stride = rows_.outputs() * 3;
      for (std::size_t o = 0; o < outputs; ++o) std::memcpy(pixels_ + o * stride + row * 3, rgb + o * 3, 3);
    }
    ++next_output_;
  }

  resize_plan plan_;
  tap_table rows_, columns_;
  std::vector<std::uint32_t> column_first_, column_weights_;
  std::size_t column_pairs_ = 0;

  std::vector<std::uint8_t> ring_, line_;
  std::vector<std::int16_t> blended_;
  std::vector<std::int32_t> sums_;
  std::size_t groups_ = 0, skip_bytes_ = 0, row_bytes_ = 0, ring_rows_ = 0;
  bool in_pieces_ = false;
  std::size_t begin_row_ = 0, next_row_ = 0, summed_to_ = 0, next_output_ = 0;
  std::uint8_t* pixels_ = nullptr;
};

using resizer = basic_resizer<native_kernels>;

}  // namespace detail
}  // namespace millrace::inline MILLRACE_ABI
