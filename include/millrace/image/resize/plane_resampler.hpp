// Resizes several planes of equal size. Input: source rows of u8, four at a time. Output: for each output row, a list
// of rows with the target width, and their weights. row_kernels.hpp computes the weighted sum of these rows.
//
//   mr::detail::basic_plane_resampler<mr::detail::portable_plane_kernels> r(false);   // reused for all images
//   r.start({.rows = rows, .columns = columns, .origin = 100, .first_row = 60, .planes = 3});
//   for (std::size_t output = 0; output < rows.outputs(); ++output) {     // in source order
//     while (!r.ready(output)) r.push(four_rows(r.next_row()));           // four rows of each plane
//     r.taps(output, t);                                                  // valid until the next push
//   }
//
// With up to ten source rows per output row, each source row is resized to the target width and stored in a ring. With
// more source rows per output row, the source rows are added to one sum per output row. Then each sum is resized to the
// target width. If the weights are bicubic, and may therefore be negative or above 1, these source rows are first
// resized and then added. Because of the sums, the memory does not grow with the scale. Every CPU produces the same
// bits.
// Units: rows and columns of the planes. `origin` is the column of a pushed row's first sample.
// Errors: none. Threads: not thread-safe; one thread at a time. Nothing is allocated unless an image is larger than all
// previous images.
#pragma once

#include <millrace/image/resize/row_kernels.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct plane_resample_options {
  const tap_table& rows;
  const tap_table& columns;
  std::size_t origin = 0;
  std::size_t first_row = 0;   ///< first row that will be pushed; at most rows.source_begin()
  std::size_t planes = 1;
  bool flipped = false;   ///< whether the columns are flipped
  int offset = 0;         ///< added to each value, in 128ths
};

/// Four rows of each plane, for up to three planes.
struct pushed_rows {
  std::array<const std::uint8_t*, 4> rows[3];
};

template <class Kernels>
class basic_plane_resampler {
 public:
  explicit basic_plane_resampler(bool wide_vectors) : wide_vectors_(wide_vectors) {}

  /// Begins an image. The tap tables (weights, see tap_table.hpp) must stay valid until the last output has been read.
  void start(const plane_resample_options& o) {
    rows_ = &o.rows;
    planes_ = o.planes;
    offset_ = o.offset;
    next_row_ = begin_row_ = o.first_row;
    way_ = o.rows.max_count() <= max_row_taps ? way::ring : o.rows.overshoots() ? way::lines_added : way::rows_added;
    const bool sums_first = way_ == way::rows_added;
    skip_ = sums_first ? o.columns.source_begin() - o.origin : 0;
    columns_.build({.taps = o.columns,
                    .origin = o.origin + skip_,
                    .flipped = o.flipped,
                    .wide = sums_first,
                    .wide_vectors = wide_vectors_});
    line_ = columns_.padded();
    next_output_ = 0;
    const std::size_t needed = way_ == way::ring ? o.rows.max_count() + rows_at_once - 1 : outputs_at_once();
    ring_rows_ = std::bit_ceil(std::max(needed, rows_at_once));   // a power of two, so that place_of() need not divide
    ring_.resize(std::max(ring_.size(), ring_rows_ * planes_ * line_));
    if (way_ == way::ring) return;
    width_ = sums_first ? o.columns.source_end() - o.columns.source_begin() : line_;
    padded_width_ = (width_ + 15) / 16 * 16;
    sums_.resize(std::max(sums_.size(), ring_rows_ * planes_ * padded_width_));
    wide_.resize(std::max(wide_.size(), sums_first ? padded_width_ + 64 : rows_at_once * line_));
  }

  std::size_t next_row() const noexcept { return next_row_; }
  bool ready(std::size_t output) const noexcept { return rows_->end(output) <= next_row_; }
  /// Returns the distance between the planes of a row, in elements.
  std::size_t plane_stride() const noexcept { return line_; }

  /// Adds the next four rows of each plane. Rows beyond rows.source_end() may have any content, but must be readable.
  void push(const pushed_rows& pushed) noexcept {
    for (std::size_t p = 0; p < planes_; ++p) {
      const auto& r = pushed.rows[p];
      if (way_ == way::ring) {
        columns_.run({.rows = {r[0], r[1], r[2], r[3]},
                      .out = ring_.data() + (place_of(next_row_ - begin_row_) * planes_ + p) * line_,
                      .stride = planes_ * line_,
                      .offset = offset_});
      } else if (way_ == way::lines_added) {
        columns_.run({.rows = {r[0], r[1], r[2], r[3]}, .out = wide_.data(), .stride = line_, .offset = offset_});
        add_to_outputs([&](std::size_t o, const row_use& use) { add_lines(o, use, p); });
      }
    }
    if (way_ == way::rows_added) add_to_outputs([&](std::size_t o, const row_use& use) { add_rows(o, use, pushed); });
    next_row_ += rows_at_once;
  }

  void taps(std::size_t output, row_taps& t) const noexcept {
    t.plane_stride = line_;
    t.clamps = rows_->overshoots();
    if (way_ != way::ring) {
      t.count = 1;
      t.rows[0] = ring_.data() + place_of(output) * planes_ * line_;
      t.weights[0] = 1 << tap_table::weight_bits;
      return;
    }
    if (rows_->overshoots()) return overshooting_taps(output, t);
    t.count = rows_->count(output);
    const std::size_t first = rows_->first(output) - begin_row_;
    for (std::size_t k = 0; k < t.count; ++k) {
      t.rows[k] = ring_.data() + place_of(first + k) * planes_ * line_;
      t.weights[k] = rows_->weights(output)[k];
    }
  }

 private:
  static constexpr std::size_t rows_at_once = 4;

  enum class way : std::uint8_t { ring, rows_added, lines_added };

  /// The weights of the four pushed rows for an output.
  struct row_use {
    std::int16_t weights[rows_at_once];
    bool begins, ends;   // whether these rows include the output's first row, and its last row
  };

  std::size_t place_of(std::size_t row) const noexcept { return row & (ring_rows_ - 1); }

  /// Returns the maximum number of outputs that need memory at the same time: incomplete outputs, and complete outputs
  /// that are not yet read.
  std::size_t outputs_at_once() const noexcept {
    std::size_t most = 1;
    for (std::size_t o = 0, later = 0; o < rows_->outputs(); ++o) {
      while (later < rows_->outputs() && rows_->first(later) < rows_->end(o) + rows_at_once) ++later;
      most = std::max(most, later - o);
    }
    return most;
  }

  /// Returns the rows of an output. As row_kernels.hpp requires, rows with negative weights are first, and a weight
  /// above 1 is split into two weights.
  void overshooting_taps(std::size_t output, row_taps& t) const noexcept {
    const std::size_t first = rows_->first(output) - begin_row_;
    const std::int16_t* const weights = rows_->weights(output);
    constexpr std::int16_t one = 1 << tap_table::weight_bits;
    t.count = 0;
    for (const bool below : {true, false})
      for (std::size_t k = 0; k < rows_->count(output); ++k) {
        if ((weights[k] < 0) != below) continue;
        const std::int16_t* const row = ring_.data() + place_of(first + k) * planes_ * line_;
        const std::int16_t more = weights[k] > one ? static_cast<std::int16_t>(weights[k] - one) : std::int16_t{0};
        if (more > 0) t.add(row, more);
        t.add(row, static_cast<std::int16_t>(weights[k] - more));
      }
  }

  /// Calls add(output, use) for each output that uses one of the next four rows.
  template <class Add>
  void add_to_outputs(const Add& add) noexcept {
    const std::size_t begin = next_row_, end = begin + rows_at_once;
    while (next_output_ < rows_->outputs() && rows_->end(next_output_) <= begin) ++next_output_;
    for (std::size_t o = next_output_; o < rows_->outputs() && rows_->first(o) < end; ++o) {
      if (rows_->end(o) <= begin) continue;
      row_use use{.weights = {}, .begins = rows_->first(o) >= begin, .ends = rows_->end(o) <= end};
      for (std::size_t k = 0; k < rows_at_once; ++k) {
        const bool used = rows_->first(o) <= begin + k && begin + k < rows_->end(o);
        use.weights[k] = used ? rows_->weights(o)[begin + k - rows_->first(o)] : std::int16_t{0};
      }
      add(o, use);
    }
  }

  void add_rows(std::size_t o, const row_use& use, const pushed_rows& pushed) noexcept {
    row_addition a{.rows = {},
                   .weights = {},
                   .count = width_,
                   .begins = use.begins,
                   .finished = use.ends ? wide_.data() : nullptr};
    std::copy_n(use.weights, rows_at_once, a.weights);
    for (std::size_t p = 0; p < planes_; ++p) {
      const std::size_t place = place_of(o) * planes_ + p;
      a.sums = sums_.data() + place * padded_width_;
      for (std::size_t k = 0; k < rows_at_once; ++k) a.rows[k] = pushed.rows[p][k] + skip_;
      Kernels::plane_rows::add_rows(a);
      if (use.ends) columns_.run_wide({.row = wide_.data(), .out = ring_.data() + place * line_, .offset = offset_});
    }
  }

  /// Adds the four resized rows in wide_, all of one plane, to the sums of output `o`.
  void add_lines(std::size_t o, const row_use& use, std::size_t plane) noexcept {
    const std::size_t place = place_of(o) * planes_ + plane;
    const std::int16_t* const lines = wide_.data();
    line_addition a{.rows = {lines, lines + line_, lines + 2 * line_, lines + 3 * line_},
                    .weights = {},
                    .count = line_,
                    .sums = sums_.data() + place * padded_width_,
                    .begins = use.begins,
                    .finished = use.ends ? ring_.data() + place * line_ : nullptr};
    std::copy_n(use.weights, rows_at_once, a.weights);
    Kernels::plane_rows::add_lines(a);
  }

  const bool wide_vectors_;
  typename Kernels::tap_columns columns_;
  const tap_table* rows_ = nullptr;
  std::size_t planes_ = 1, line_ = 0, skip_ = 0, width_ = 0, padded_width_ = 0, ring_rows_ = 4;
  std::size_t begin_row_ = 0, next_row_ = 0, next_output_ = 0;
  int offset_ = 0;
  way way_ = way::ring;
  std::vector<std::int16_t> ring_, wide_;
  std::vector<std::int32_t> sums_;
};

}}}   // namespace millrace::detail
