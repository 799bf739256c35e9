// The kernels of column_kernels.hpp with NEON. They compute the same sums, for 8 columns of four rows at a time, and
// write the outputs in order from left to right.
//
//   mr::detail::neon::tap_columns columns;
//   columns.build({.taps = taps, .origin = 100, .flipped = true});
//   columns.run({.rows = {a, b, c, d}, .out = sums, .stride = 672});
//
// There are three kinds of kernels with the same results. The first kind whose conditions are met is used:
// - bytes: 8 neighboring outputs use at most 64 samples, no weight is negative or above 1, and sums fit in 16 bits. A
//   weight is split into two bytes, and sums have 16 bits.
// - words: 8 neighboring outputs use at most 64 samples. Sums have 32 bits.
// - long: any number of taps
//
// Shapes, units, errors, threads: see column_kernels.hpp.
#pragma once

#include <millrace/base/version.hpp>

#ifdef __aarch64__

#include <millrace/base/aligned_allocator.hpp>
#include <millrace/image/resize/column_kernels.hpp>
#include <millrace/simd/words.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define MILLRACE_KERNELS <millrace/image/resize/long_columns_body.inc>
#include <millrace/simd/for_each_layer.inc>

#include <millrace/simd/layer_begin.inc>

class tap_columns {
 public:
  void build(const tap_column_plan& plan) {
    outputs_ = plan.taps.outputs();
    taps_ = plan.taps.max_count();
    clamps_ = plan.taps.overshoots();
    kind_ = clamps_ ? kind::words : taps_ <= 5 ? kind::bytes_6 : kind::bytes_5;
    if (plan.wide || !build_groups(plan)) kind_ = kind::long_taps;
    else if (kind_ != kind::words && !build_byte_weights(plan)) kind_ = kind::words;
    if (kind_ == kind::words) build_word_weights(plan);
    if (kind_ == kind::long_taps) long_.build(plan);
  }

  std::size_t padded() const noexcept { return padded_columns(outputs_); }

  void run(const tap_column_rows& r) const noexcept {
    switch (kind_) {
      case kind::bytes_6: return run_few(r);
      case kind::bytes_5: return run_groups<byte_sums<5>>(r);
      case kind::words: return run_groups<word_sums>(r);
      default: long_columns::run<4>(long_, r.rows, {r.out, r.stride, r.offset, clamps_});
    }
  }

  void run_wide(const wide_column_row& r) const noexcept {
    long_columns::run<1>(long_, &r.row, {r.out, 0, r.offset, false});
  }

 private:
  enum class kind : std::uint8_t { bytes_6, bytes_5, words, long_taps };

  /// The window of up to 64 samples that 8 outputs use. `base` is the first sample of the window. `pick` contains
  /// positions relative to `base`: of each output's first sample, and for `bytes` also of its second sample.
  struct group {
    alignas(16) std::uint8_t pick[16];
    std::int32_t base;
  };
  /// The weights of two taps of 8 outputs: high and low parts for `bytes`, words of 16 bits for `words`.
  struct tap_pair {
    alignas(16) std::uint8_t high[2][8], low[2][8];
  };

  /// Returns false if the samples of 8 neighboring outputs do not fit into a window.
  bool build_groups(const tap_column_plan& plan) {
    groups_.resize(padded() / 8);
    std::size_t widest = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const std::size_t base = std::min(plan.first_of(8 * g), plan.first_of(8 * g + 7));
      groups_[g].base = static_cast<std::int32_t>(base);
      for (std::size_t j = 0; j < 8; ++j) {
        const std::size_t offset = plan.first_of(8 * g + j) - base;
        groups_[g].pick[j] = static_cast<std::uint8_t>(offset);
        groups_[g].pick[8 + j] = static_cast<std::uint8_t>(offset + 1);
        widest = std::max(widest, offset + taps_);
      }
    }
    registers_ = widest <= 16 ? 1 : widest <= 32 ? 2 : 4;
    return widest <= 64;
  }

  /// Returns false if the sum of samples times low parts of weights could exceed 16 bits.
  bool build_byte_weights(const tap_column_plan& plan) {
    const int bits = kind_ == kind::bytes_6 ? 6 : 5;
    int largest = 0;
    clear_weights();
    for (std::size_t o = 0; o < outputs_; ++o) {
      tap_pair* const pairs = weights_.data() + o / 8 * pairs_;
      int sum = 0;
      for_column_weights(plan.taps, plan.source_of(o), [&](std::size_t k, int weight) {
        const int high = std::min(weight >> bits, 255), low = weight - (high << bits);
        pairs[k / 2].high[k % 2][o % 8] = static_cast<std::uint8_t>(high);
        pairs[k / 2].low[k % 2][o % 8] = static_cast<std::uint8_t>(low);
        sum += low;
      });
      largest = std::max(largest, sum);
    }
    return largest <= 257;
  }

  void build_word_weights(const tap_column_plan& plan) {
    clear_weights();
    for (group& g : groups_) {
      const uint8x8_t first = vld1_u8(g.pick);
      vst1q_u16(reinterpret_cast<std::uint16_t*>(g.pick), vorrq_u16(vmovl_u8(first), vdupq_n_u16(0xff00)));
    }
    for (std::size_t o = 0; o < outputs_; ++o)
      for_column_weights(plan.taps, plan.source_of(o), [&](std::size_t k, int weight) {
        auto* const of_pair = reinterpret_cast<std::uint8_t*>(&weights_[o / 8 * pairs_ + k / 2]);
        store(of_pair + 16 * (k % 2) + 2 * (o % 8), static_cast<std::int16_t>(weight));
      });
  }

  void clear_weights() {
    pairs_ = (taps_ + 1) / 2;
    weights_.assign(groups_.size() * pairs_, {});
  }

  /// A window in consecutive registers, as a table look-up requires.
  template <int registers>
  struct window {
    std::conditional_t<registers == 1, uint8x16_t, std::conditional_t<registers == 2, uint8x16x2_t, uint8x16x4_t>> v;

    MILLRACE_SIMD void load(const std::uint8_t* from) noexcept {
      if constexpr (registers == 1) v = vld1q_u8(from);
      else if constexpr (registers == 2) v = vld1q_u8_x2(from);
      else v = vld1q_u8_x4(from);
    }
    MILLRACE_SIMD uint8x16_t at(uint8x16_t pick) const noexcept {
      if constexpr (registers == 1) return vqtbl1q_u8(v, pick);
      else if constexpr (registers == 2) return vqtbl2q_u8(v, pick);
      else return vqtbl4q_u8(v, pick);
    }
  };

  /// The sums of 8 outputs as 2^bits * high + low.
  template <int bits>
  struct byte_sums {
    uint16x8_t high, low;

    MILLRACE_SIMD static uint8x16_t later(uint8x16_t pick, std::uint8_t taps) noexcept {
      return vaddq_u8(pick, vdupq_n_u8(taps));
    }
    template <bool begins, class Window>
    MILLRACE_SIMD void add(const Window& w, uint8x16_t pick, uint8x16_t of_high, uint8x16_t of_low,
                           bool single) noexcept {
      const uint8x16_t samples = w.at(pick);
      if constexpr (begins) high = low = vdupq_n_u16(0);
      high = vmlal_u8(high, vget_low_u8(samples), vget_low_u8(of_high));
      low = vmlal_u8(low, vget_low_u8(samples), vget_low_u8(of_low));
      if (single) return;
      high = vmlal_high_u8(high, samples, of_high);
      low = vmlal_high_u8(low, samples, of_low);
    }
    /// Returns (sums + 32) >> 6.
    MILLRACE_SIMD int16x8_t rounded() const noexcept {
      if constexpr (bits == 6) return vreinterpretq_s16_u16(vrsraq_n_u16(high, low, 6));
      else return vreinterpretq_s16_u16(vrhaddq_u16(high, vshrq_n_u16(low, 5)));
    }
  };

  struct word_sums {
    int32x4_t low, high;

    MILLRACE_SIMD static uint8x16_t later(uint8x16_t pick, std::uint16_t taps) noexcept {
      return vreinterpretq_u8_u16(vaddq_u16(vreinterpretq_u16_u8(pick), vdupq_n_u16(taps)));
    }
    template <bool begins, class Window>
    MILLRACE_SIMD void add(const Window& w, uint8x16_t pick, uint8x16_t of_first, uint8x16_t of_second, bool) noexcept {
      const auto add_tap = [&](uint8x16_t picked, uint8x16_t weights) MILLRACE_ALWAYS_INLINE {
        const int16x8_t samples = vreinterpretq_s16_u8(w.at(picked)), of = vreinterpretq_s16_u8(weights);
        low = vmlal_s16(low, vget_low_s16(samples), vget_low_s16(of));
        high = vmlal_high_s16(high, samples, of);
      };
      if constexpr (begins) high = low = vdupq_n_s32(0);
      add_tap(pick, of_first);
      add_tap(later(pick, 1), of_second);
    }
    MILLRACE_SIMD int16x8_t rounded() const noexcept { return vqrshrn_high_n_s32(vqrshrn_n_s32(low, 6), high, 6); }
  };

  /// The usual numbers of taps have their own loops.
  void run_few(const tap_column_rows& r) const noexcept {
    if (registers_ == 1 && taps_ == 2) return run_groups<byte_sums<6>, 1, 2>(r);
    if (registers_ == 1 && taps_ == 3) return run_groups<byte_sums<6>, 1, 3>(r);
    if (registers_ == 1 && taps_ == 4) return run_groups<byte_sums<6>, 1, 4>(r);
    if (registers_ == 2 && taps_ == 5) return run_groups<byte_sums<6>, 2, 5>(r);
    run_groups<byte_sums<6>>(r);
  }
  template <class Sums>
  void run_groups(const tap_column_rows& r) const noexcept {
    if (registers_ == 1) return run_groups<Sums, 1, 0>(r);
    registers_ == 2 ? run_groups<Sums, 2, 0>(r) : run_groups<Sums, 4, 0>(r);
  }

  template <class Sums, int registers, std::size_t taps>
  [[gnu::noinline]] void run_groups(const tap_column_rows& r) const noexcept {
    const tap_pair* pair = weights_.data();
    const std::size_t pairs = taps == 0 ? pairs_ : (taps + 1) / 2, stride = r.stride;
    const std::uint8_t* const rows[4] = {r.rows[0], r.rows[1], r.rows[2], r.rows[3]};
    const int16x8_t offset = vdupq_n_s16(static_cast<std::int16_t>(r.offset));
    const bool centered = r.offset != 0, clamps = clamps_;
    std::int16_t* out = r.out;
    for (const group& g : groups_) {
      window<registers> w[4];
      for (std::size_t k = 0; k < 4; ++k) w[k].load(rows[k] + g.base);
      Sums sums[4];
      uint8x16_t pick = vld1q_u8(g.pick);
      add<true>(sums, w, pick, *pair++, taps == 1);
      for (std::size_t p = 1; p < pairs; ++p) {
        pick = Sums::later(pick, 2);
        add<false>(sums, w, pick, *pair++, taps != 0 && 2 * p + 1 == taps);
      }
      int16x8_t words[4] = {sums[0].rounded(), sums[1].rounded(), sums[2].rounded(), sums[3].rounded()};
      if (clamps)
        for (int16x8_t& v : words)
          v = vminq_s16(vmaxq_s16(v, vdupq_n_s16(0)), vdupq_n_s16(static_cast<std::int16_t>(largest_column_sum)));
      if (centered)
        for (int16x8_t& v : words) v = vaddq_s16(v, offset);
      for (std::size_t k = 0; k < 4; ++k) vst1q_s16(out + k * stride, words[k]);
      out += 8;
    }
  }
  template <bool begins, class Sums, class Window>
  MILLRACE_SIMD static void add(Sums (&sums)[4], const Window (&w)[4], uint8x16_t pick, const tap_pair& pair,
                                bool single) noexcept {
    const uint8x16_t first = vld1q_u8(pair.high[0]), second = vld1q_u8(pair.low[0]);
    for (std::size_t k = 0; k < 4; ++k) sums[k].template add<begins>(w[k], pick, first, second, single);
  }

  kind kind_ = kind::long_taps;
  std::size_t outputs_ = 0, taps_ = 0, pairs_ = 0;
  int registers_ = 1;   // registers of a window
  bool clamps_ = false;
  aligned_vector<group> groups_;
  aligned_vector<tap_pair> weights_;
  long_column_taps long_;
};

#include <millrace/simd/layer_end.inc>

#endif
