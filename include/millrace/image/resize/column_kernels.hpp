// The horizontal half of a resize: rows of u8 samples become rows of 16-bit sums, one sum per output column.
//
//   mr::detail::portable_tap_columns columns;                           // reused for all images
//   columns.build({.taps = taps, .origin = 100, .flipped = true});  // rows begin at source column 100
//   columns.run({.rows = {a, b, c, d}, .out = sums, .stride = 672, .offset = -16384});
//
// An output is a column of the result. A tap is a sample that the output uses, with its weight (tap_table.hpp). Sums
// have 7 fraction bits. run() resizes rows of bytes. If weights are negative or above 1, run() clamps the sums to
// values of 0..255, as in Pillow. run_wide() resizes rows that already have 7 fraction bits, without a clamp. Both then
// add `offset` to each sum. Each implementation writes the outputs in its own order. The row kernels of the same
// implementation (row_kernels.hpp) later restore the left-to-right order.
// Units: in `out`, each row has columns.padded() elements, and the rows begin `stride` elements apart. run() processes
// four rows; a caller with fewer rows must repeat a row. run_wide() processes one row. Up to
// guarded_resize_plane::slack_bytes are read beyond the end of a row.
// Errors: none. Threads: several threads may call run() and run_wide() at the same time, but not build().
#pragma once

#include <millrace/image/resize/tap_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct tap_column_plan {
  const tap_table& taps;
  std::size_t origin = 0;   ///< source column of a row's first sample
  bool flipped = false;
  bool wide = false;           ///< run_wide() will be called instead of run()
  bool wide_vectors = false;   ///< allows registers of 512 bits; requires cpu_has_wide_vectors()

  /// Returns the index in `taps` for the output at this position. The index differs from the position if the result is
  /// flipped.
  std::size_t source_of(std::size_t output) const noexcept { return flipped ? taps.outputs() - 1 - output : output; }
  /// Returns the first sample of the output at this position. For positions beyond the end, returns the first sample of
  /// the last output.
  std::size_t first_of(std::size_t output) const noexcept {
    return taps.first(source_of(std::min(output, taps.outputs() - 1))) - origin;
  }
};

struct tap_column_rows {
  const std::uint8_t* rows[4];
  std::int16_t* out = nullptr;
  std::size_t stride = 0;
  int offset = 0;
};

struct wide_column_row {
  const std::int16_t* row = nullptr;
  std::int16_t* out = nullptr;
  int offset = 0;
};

inline constexpr int column_weight_bits = 13;
inline constexpr int largest_column_sum = 255 << 7;   // less than 2^15; before the clamp, a sum may exceed 2^15
inline constexpr std::size_t columns_at_once = 32;

/// Calls each(k, weight) for each tap of an output. The weights have 13 fraction bits.
template <class Each>
void for_column_weights(const tap_table& taps, std::size_t output, const Each& each) {
  const std::int16_t* weights = taps.weights(output);
  int running = 0, before = 0;
  for (std::size_t k = 0; k < taps.count(output); ++k) {
    running += weights[k];
    const int upto = (running + 1) >> 1;
    each(k, upto - before);
    before = upto;
  }
}

/// Returns the number of columns that kernels write for a result of `columns` columns: the next multiple of
/// columns_at_once.
constexpr std::size_t padded_columns(std::size_t columns) noexcept {
  return (columns + columns_at_once - 1) / columns_at_once * columns_at_once;
}

/// The tables of kernels for any number of taps. Each output has the same number of chunks; a chunk is 16 samples with
/// their weights.
struct long_column_taps {
  std::size_t chunks = 0;
  std::vector<std::size_t> first{};      ///< the first sample of each output
  std::vector<std::int16_t> weights{};   ///< 16 * chunks for each output

  void build(const tap_column_plan& plan) {
    const std::size_t outputs = plan.taps.outputs(), padded = padded_columns(outputs);
    chunks = (plan.taps.max_count() + 15) / 16;
    first.assign(padded, 0);
    weights.assign(padded * chunks * 16, 0);
    // All outputs read the same number of samples. Near the right edge, an output reads the last samples of the row,
    // because memory beyond the image may be unmapped. The weights of such an output are at the end of its chunks.
    const std::size_t width = plan.taps.source_end() - plan.origin;
    const std::size_t last_first = width - std::min(width, 16 * chunks);
    for (std::size_t o = 0; o < outputs; ++o) {
      const std::size_t own_first = plan.first_of(o);
      first[o] = std::min(own_first, last_first);
      for_column_weights(plan.taps, plan.source_of(o), [&](std::size_t k, int weight) {
        weights[o * chunks * 16 + k + (own_first - first[o])] = static_cast<std::int16_t>(weight);
      });
    }
  }
};

class portable_tap_columns {
 public:
  void build(const tap_column_plan& plan) {
    const std::size_t outputs = plan.taps.outputs();
    clamps_ = plan.taps.overshoots();
    taps_ = plan.taps.max_count();
    first_.resize(outputs);
    counts_.resize(outputs);
    weights_.assign(outputs * taps_, 0);
    for (std::size_t o = 0; o < outputs; ++o) {
      const std::size_t from = plan.source_of(o);
      first_[o] = plan.first_of(o);
      for_column_weights(plan.taps, from,
                         [&](std::size_t k, int w) { weights_[o * taps_ + k] = static_cast<std::int16_t>(w); });
      counts_[o] = plan.taps.count(from);
    }
  }

  std::size_t padded() const noexcept { return padded_columns(first_.size()); }

  void run(const tap_column_rows& r) const noexcept {
    for (std::size_t k = 0; k < 4; ++k)
      for (std::size_t o = 0; o < first_.size(); ++o) {
        const int value = (sum(r.rows[k], o) + 32) >> 6;
        const int clamped = clamps_ ? std::clamp(value, 0, largest_column_sum) : value;
        r.out[k * r.stride + o] = static_cast<std::int16_t>(clamped + r.offset);
      }
  }

  void run_wide(const wide_column_row& r) const noexcept {
    for (std::size_t o = 0; o < first_.size(); ++o)
      r.out[o] = static_cast<std::int16_t>(((sum(r.row, o) + 4'096) >> column_weight_bits) + r.offset);
  }

 private:
  template <class Sample>
  int sum(const Sample* row, std::size_t o) const noexcept {
    int total = 0;
    for (std::size_t k = 0; k < counts_[o]; ++k) total += row[first_[o] + k] * weights_[o * taps_ + k];
    return total;
  }

  bool clamps_ = false;
  std::size_t taps_ = 0;
  std::vector<std::size_t> first_, counts_;
  std::vector<std::int16_t> weights_;
};

}}}   // namespace millrace::detail
