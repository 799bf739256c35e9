// The kernels of column_kernels.hpp with AVX2 or AVX-512: the same sums, 16 or 32 columns at a time.
//
//   mr::detail::avx2::tap_columns columns;
//   columns.build({.taps = taps, .origin = 100, .flipped = true});
//   columns.run({.rows = {a, b, c, d}, .out = sums, .stride = 672});
//
// There are three kinds of kernels with the same results. The first kind whose conditions are met is used:
// - short: up to 4 taps, and the first samples of 8 neighboring outputs are at most 14 samples apart
// - medium: up to 10 taps, and the first samples of 4 neighboring outputs are at most 14 samples apart
// - long: any number of taps
//
// Weights that are negative or above 1 use medium or long, whose sums have 32 bits. In the short kernels, put_weights()
// splits each weight into two bytes. Each output then has two sums of 16 bits, which are combined. Order in `out`, for
// each 32 columns: 0-7, 16-23, 8-15, 24-31. Shapes, units, errors, threads: see column_kernels.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/base/aligned_allocator.hpp>
#include <millrace/image/resize/column_kernels.hpp>
#include <millrace/simd/words.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The tables of 32 outputs. A lane of 16 bytes contains 8 outputs. The four lanes are the columns 0-7, 16-23, 8-15 and
/// 24-31. `pick` selects the samples from the window of 16 bytes that begins at base[lane].
struct alignas(64) short_column_group {
  static constexpr std::size_t lanes = 4;

  std::uint8_t pick[64];   ///< first and second sample of each output
  std::int8_t high[2][64], low[2][64];
  std::int32_t base[lanes];

  /// Returns whether one window of 64 bytes contains the samples of all outputs.
  bool fits() const noexcept {
    int last = 0;   // the last sample of a lane belongs to its first or its last output
    for (std::size_t at = 0; at < sizeof pick; at += 16)
      last = std::max(last, std::max(pick[at + 1], pick[at + 15]) + base[at / 16]);
    return last + 2 - first() < 64;   // the second pair of taps is two bytes later
  }
  /// Changes `pick` to select from one window that begins at base[0].
  void widen() noexcept {
    const int begin = first();
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const auto later = static_cast<std::uint8_t>(base[lane] - begin);
      for (std::size_t i = 0; i < 16; ++i) pick[16 * lane + i] = static_cast<std::uint8_t>(pick[16 * lane + i] + later);
    }
    base[0] = begin;
  }

 private:
  int first() const noexcept { return *std::min_element(base, base + lanes); }
};

}}}   // namespace millrace::detail

#define MILLRACE_WIDE_KERNELS
#define MILLRACE_KERNELS <millrace/image/resize/columns_body.inc>
#include <millrace/simd/for_each_layer.inc>
#define MILLRACE_KERNELS <millrace/image/resize/long_columns_body.inc>
#include <millrace/simd/for_each_layer.inc>

#include <millrace/simd/layer_begin.inc>

class tap_columns {
 public:
  void build(const tap_column_plan& plan) {
    outputs_ = plan.taps.outputs();
    const std::size_t taps = plan.taps.max_count();
    pairs_ = (taps + 1) / 2;
    clamps_ = plan.taps.overshoots();
    kind_ = plan.wide || taps > 10 ? kind::long_taps : taps > 4 || clamps_ ? kind::medium_taps : kind::short_taps;
    if (kind_ == kind::short_taps && !build_short(plan)) kind_ = kind::medium_taps;
    if (kind_ == kind::medium_taps) {
      wide_ = plan.wide_vectors && wide_medium_.build(plan, padded());
      if (!wide_ && !medium_.build(plan, padded())) kind_ = kind::long_taps;
    }
    if (kind_ == kind::long_taps) long_.build(plan);
  }

  std::size_t padded() const noexcept { return padded_columns(outputs_); }

  void run(const tap_column_rows& r) const noexcept {
    switch (kind_) {
      case kind::short_taps:
        if (wide_) avx512::short_tap_columns::run(short_, r, pairs_, true);
        else short_tap_columns::run(short_, r, pairs_, one_window_);
        break;
      case kind::medium_taps: wide_ ? wide_medium_.run(r) : medium_.run(r); break;
      default:
        for (std::size_t k = 0; k < 4; ++k)
          long_columns::run<1>(long_, r.rows + k, {r.out + k * r.stride, 0, r.offset, clamps_});
    }
  }

  void run_wide(const wide_column_row& r) const noexcept {
    long_columns::run<1>(long_, &r.row, {r.out, 0, r.offset, false});
  }

 private:
  enum class kind : std::uint8_t { short_taps, medium_taps, long_taps };

  bool build_short(const tap_column_plan& plan) {
    short_.resize(padded() / columns_at_once);
    one_window_ = true;
    for (std::size_t g = 0; g < short_.size(); ++g) {
      short_column_group& group = short_[g];
      std::memset(&group, 0, sizeof group);
      for (std::size_t lane = 0; lane < short_column_group::lanes; ++lane) {
        constexpr std::size_t first[short_column_group::lanes] = {0, 16, 8, 24};
        const std::size_t begin = g * columns_at_once + first[lane];
        const std::size_t base = std::min(plan.first_of(begin), plan.first_of(begin + 7));
        group.base[lane] = static_cast<std::int32_t>(base);
        for (std::size_t j = 0; j < 8; ++j) {
          const std::size_t offset = plan.first_of(begin + j) - base, at = 16 * lane + 2 * j;
          if (offset > 14) return false;
          if (offset > 12) one_window_ = false;
          group.pick[at] = static_cast<std::uint8_t>(offset);
          group.pick[at + 1] = static_cast<std::uint8_t>(offset + 1);
        }
        if (begin < outputs_) put_weights(plan, begin, group, lane);
      }
    }
    wide_ = plan.wide_vectors && std::ranges::all_of(short_, &short_column_group::fits);
    if (wide_) std::ranges::for_each(short_, &short_column_group::widen);
    return true;
  }

  /// Writes the weights of 8 outputs, starting with output `begin`. If fewer outputs remain, writes only their weights.
  void put_weights(const tap_column_plan& plan, std::size_t begin, short_column_group& group,
                   std::size_t lane) const noexcept {
    constexpr std::size_t places = tap_table::padded_count;
    const std::size_t count = std::min<std::size_t>(outputs_ - begin, 8), missing = 8 - count;
    const std::int16_t* from = plan.taps.weights(plan.flipped ? outputs_ - count - begin : begin);
    std::int16_t last[8 * places] = {};
    if (missing > 0) {
      std::memcpy(last + (plan.flipped ? missing * places : 0), from, count * places * sizeof *from);
      from = last;
    }
    octs first = load<octs>(from), second = load<octs>(from + 4 * places);   // four weights of each output
    if (plan.flipped) {
      std::swap(first, second);
      first = __builtin_shufflevector(first, first, 3, 2, 1, 0);
      second = __builtin_shufflevector(second, second, 3, 2, 1, 0);
    }
    const split_weights begin_of = split((__m256i)first), end_of = split((__m256i)second);
    put_pairs(begin_of.high, end_of.high, group.high, lane);
    put_pairs(begin_of.low, end_of.low, group.low, lane);
  }

  struct split_weights {
    __m256i high, low;
  };

  static split_weights split(__m256i weights) noexcept {
    const __m256i pairs = _mm256_add_epi16(weights, _mm256_slli_epi64(weights, 16));
    const __m256i running = _mm256_add_epi16(pairs, _mm256_slli_epi64(pairs, 32));
    const __m256i upto = _mm256_avg_epu16(running, _mm256_setzero_si256());
    const __m256i high_upto = _mm256_srli_epi16(_mm256_add_epi16(upto, _mm256_set1_epi16(32)), 6);
    const __m256i high = _mm256_min_epi16(differences(high_upto), _mm256_set1_epi16(127));
    return {high, _mm256_sub_epi16(differences(upto), _mm256_slli_epi16(high, 6))};
  }

  static __m256i differences(__m256i v) noexcept { return _mm256_sub_epi16(v, _mm256_slli_epi64(v, 16)); }

  /// Writes the bytes of the weights. to[0] receives the first two weights of each output, and to[1] the last two
  /// weights.
  static void put_pairs(__m256i first, __m256i second, std::int8_t (&to)[2][64], std::size_t lane) noexcept {
    static constexpr std::uint8_t by_pairs[16] = {0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15};
    const auto packed = (bytes)_mm256_packs_epi16(first, second);   // outputs 0, 1, 4, 5 and 2, 3, 6, 7
    const auto in_order = (__m256i)by_turns(as_quads(entries_of(packed, load_table(by_pairs))));
    _mm_store_si128(reinterpret_cast<__m128i*>(to[0] + 16 * lane), _mm256_castsi256_si128(in_order));
    _mm_store_si128(reinterpret_cast<__m128i*>(to[1] + 16 * lane), _mm256_extracti128_si256(in_order, 1));
  }

  kind kind_ = kind::long_taps;
  std::size_t outputs_ = 0, pairs_ = 0;
  bool one_window_ = false, clamps_ = false;
  bool wide_ = false;   // whether short and medium taps are summed in registers of 512 bits
  aligned_vector<short_column_group> short_;
  medium_columns medium_;
  avx512::medium_columns wide_medium_;
  long_column_taps long_;
};

#include <millrace/simd/layer_end.inc>

#endif
