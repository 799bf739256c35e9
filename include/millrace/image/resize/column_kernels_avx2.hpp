// The kernels of column_kernels.hpp with AVX2: the same sums, 16 columns at a time.
//
//   mr::detail::avx2_columns columns;
//   columns.build({.taps = taps, .origin = 100, .flipped = true});
//   columns.run({.rows = {a, b, c, d}, .out = sums, .stride = 672});
//
// A tap is one weighted sample of an output. There are three kinds of kernels with the same results. The first kind
// whose conditions are met is used:
// - short: up to 4 taps, and 8 neighboring outputs use at most 16 samples
// - medium: up to 10 taps, and the first samples of 4 neighboring outputs are within 15 samples
// - long: any number of taps
//
// Weights that are negative or above 1 use medium or long, whose sums have 32 bits. The sums of short fit into 16 bits,
// because put_weights() splits each weight into two bytes.
// Order in `out`: of each 32 columns, the first vector contains columns 0-7 and 16-23. The second vector contains the
// others.
// Shapes, units, errors, threads: see column_kernels.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/base/aligned_allocator.hpp>
#include <millrace/image/resize/column_kernels.hpp>
#include <millrace/image/resize/medium_columns_avx512.hpp>
#include <millrace/image/resize/short_columns_avx512.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class avx2_columns {
 public:
  void build(const column_plan& plan) {
    outputs_ = plan.taps.outputs();
    const std::size_t taps = plan.taps.max_count();
    pairs_ = (taps + 1) / 2;
    clamps_ = plan.taps.overshoots();
    kind_ = plan.wide || taps > 10 ? kind::long_taps : taps > 4 || clamps_ ? kind::medium_taps : kind::short_taps;
    if (kind_ == kind::short_taps && !build_short(plan)) kind_ = kind::medium_taps;
    if (kind_ == kind::medium_taps) {
      wide_ = plan.wide_vectors && wide_medium_.build(plan, padded());
      if (!wide_ && !build_medium(plan)) kind_ = kind::long_taps;
    }
    if (kind_ == kind::long_taps) long_.build(plan);
  }

  std::size_t padded() const noexcept { return padded_columns(outputs_); }

  void run(const column_rows& r) const noexcept {
    if (kind_ == kind::long_taps) return run_long(r);
    if (kind_ == kind::medium_taps && wide_) return wide_medium_.run(r, clamps_);
    if (kind_ == kind::medium_taps) return one_window_ ? run_medium<true>(r) : run_medium<false>(r);
    if (wide_) return avx512_short_columns::run(short_, r, pairs_);
    r.offset == 0 ? run_short<false>(r) : run_short<true>(r);
  }

  void run_wide(const wide_column_row& r) const noexcept {
    for (std::size_t block = 0; block < padded(); block += 8)
      store_long(r.out, block, sums_of_8(r.row, block),
                 {.half = 4'096, .shift = column_weight_bits, .offset = r.offset});
  }

 private:
  enum class kind : std::uint8_t { short_taps, medium_taps, long_taps };

  using short_group = short_column_group;
  /// 16 outputs, 4 in each lane of two vectors.
  struct alignas(32) medium_group {
    std::uint8_t pick[2][32];
    std::int16_t weights[5][2][16];
    std::int32_t base[2][2];
  };
  struct rounding {
    int half, shift, offset;
    bool clamps = false;
  };

  /// Returns the first of the 8 outputs in a lane of a group (see the order above).
  static std::size_t lane_output(std::size_t group, std::size_t lane) noexcept {
    return group / 2 * columns_at_once + group % 2 * 8 + lane * 16;
  }

  bool build_short(const column_plan& plan) {
    short_.resize(padded() / columns_at_once);
    one_window_ = true;
    wide_ = plan.wide_vectors;
    for (std::size_t g = 0; g < short_.size(); ++g) {
      short_group& group = short_[g];
      std::memset(&group, 0, sizeof group);
      for (std::size_t lane = 0; lane < short_group::lanes; ++lane) {
        const std::size_t begin = lane_output(2 * g + lane / 2, lane % 2);
        const std::size_t base = std::min(plan.first_of(begin), plan.first_of(begin + 7));
        group.base[lane] = static_cast<std::int32_t>(base);
        for (std::size_t j = 0; j < 8; ++j) {
          const std::size_t offset = plan.first_of(begin + j) - base, at = 16 * lane + 2 * j;
          if (offset > 14) return false;
          if (offset > 12) one_window_ = false;
          group.pick[at] = static_cast<std::uint8_t>(offset);
          group.pick[at + 1] = static_cast<std::uint8_t>(offset + 1);
        }
        if (begin + 8 <= outputs_) put_weights(plan, begin, group, lane);
        else put_last_weights(plan, begin, group, lane);
      }
      wide_ = wide_ && group.widen();
    }
    return true;
  }

  /// Writes the weights of the last outputs, fewer than 8, beginning at output `begin`.
  void put_last_weights(const column_plan& plan, std::size_t begin, short_group& group, std::size_t lane) const {
    for (std::size_t j = 0; begin + j < outputs_; ++j) {
      const std::size_t at = 16 * lane + 2 * j;
      int running = 0, high_before = 0;
      for_column_weights(plan.taps, plan.source_of(begin + j), [&](std::size_t k, int weight) {
        running += weight;
        const int high_upto = (running + 32) >> 6, high = std::min(high_upto - high_before, 127);
        group.high[k / 2][at + k % 2] = static_cast<std::int8_t>(high);
        group.low[k / 2][at + k % 2] = static_cast<std::int8_t>(weight - 64 * high);
        high_before = high_upto;
      });
    }
  }

  /// Writes the weights of 8 outputs at once.
  void put_weights(const column_plan& plan, std::size_t begin, short_group& group, std::size_t lane) const noexcept {
    constexpr std::size_t places = tap_table::padded_count;
    const std::int16_t* const from = plan.taps.weights(plan.flipped ? outputs_ - 8 - begin : begin);
    split_weights first = split(load(from)), second = split(load(from + 4 * places));
    if (plan.flipped) {
      std::swap(first, second);
      split_weights* const both[] = {&first, &second};   // nvcc rejects an initializer_list of vectors
      for (split_weights* const s : both) {
        s->high = _mm256_permute4x64_epi64(s->high, 0x1b);
        s->low = _mm256_permute4x64_epi64(s->low, 0x1b);
      }
    }
    put_pairs(first.high, second.high, group.high, lane);
    put_pairs(first.low, second.low, group.low, lane);
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
    const __m256i bytes = _mm256_packs_epi16(first, second);   // outputs 0, 1, 4, 5 and 2, 3, 6, 7
    const __m256i by_pairs = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, 0, 1, 4, 5, 8, 9,
                                              12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    const __m256i in_order = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(bytes, by_pairs),
                                                         _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm_store_si128(reinterpret_cast<__m128i*>(to[0] + 16 * lane), _mm256_castsi256_si128(in_order));
    _mm_store_si128(reinterpret_cast<__m128i*>(to[1] + 16 * lane), _mm256_extracti128_si256(in_order, 1));
  }

  bool build_medium(const column_plan& plan) {
    medium_.resize(padded() / 16);
    one_window_ = true;
    for (std::size_t g = 0; g < medium_.size(); ++g) {
      medium_group& group = medium_[g];
      std::memset(&group, 0, sizeof group);
      for (std::size_t lane = 0; lane < 2; ++lane)
        for (std::size_t half = 0; half < 2; ++half) {
          const std::size_t begin = lane_output(g, lane) + 4 * half;
          const std::size_t base = std::min(plan.first_of(begin), plan.first_of(begin + 3));
          group.base[half][lane] = static_cast<std::int32_t>(base);
          for (std::size_t j = 0; j < 4; ++j) {
            const std::size_t offset = plan.first_of(begin + j) - base, at = 16 * lane + 4 * j;
            if (offset > 14) return false;
            if (offset + 2 * pairs_ > 16) one_window_ = false;
            const std::uint8_t pick[4] = {static_cast<std::uint8_t>(offset), 0x80,
                                          static_cast<std::uint8_t>(offset + 1), 0x80};   // 0x80 yields zero
            std::memcpy(group.pick[half] + at, pick, 4);
            if (begin + j >= outputs_) continue;
            for_column_weights(plan.taps, plan.source_of(begin + j), [&](std::size_t k, int weight) {
              group.weights[k / 2][half][8 * lane + 2 * j + k % 2] = static_cast<std::int16_t>(weight);
            });
          }
        }
    }
    return true;
  }

  static __m256i load(const void* from) noexcept { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
  static __m256i table(const void* from) noexcept { return _mm256_load_si256(static_cast<const __m256i*>(from)); }
  static void store(void* to, __m256i v) noexcept { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }
  /// Loads sixteen bytes for each lane.
  static __m256i window(const std::uint8_t* low, const std::uint8_t* high) noexcept {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(low))),
                                   _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)), 1);
  }

  /// The tables of a short_group in registers.
  struct short_tables {
    __m256i pick, later, high[2], low[2], rounds, offset;
    std::ptrdiff_t base[2];
  };

  template <bool Centred>
  void run_short(const column_rows& r) const noexcept {
    if (pairs_ == 1) return run_short<1, true, Centred>(r);
    one_window_ ? run_short<2, true, Centred>(r) : run_short<2, false, Centred>(r);
  }

  template <int Pairs, bool OneWindow, bool Centred>
  MILLRACE_ALWAYS_INLINE static inline __m256i short_sums(const std::uint8_t* row, const short_tables& t) noexcept {
    const __m256i bytes = window(row + t.base[0], row + t.base[1]);
    const __m256i first = _mm256_shuffle_epi8(bytes, t.pick);
    __m256i high = _mm256_maddubs_epi16(first, t.high[0]), low = _mm256_maddubs_epi16(first, t.low[0]);
    if constexpr (Pairs == 2) {
      const __m256i more = OneWindow ? bytes : window(row + t.base[0] + 2, row + t.base[1] + 2);
      const __m256i second = _mm256_shuffle_epi8(more, t.later);
      high = _mm256_add_epi16(high, _mm256_maddubs_epi16(second, t.high[1]));
      low = _mm256_add_epi16(low, _mm256_maddubs_epi16(second, t.low[1]));
    }
    if constexpr (Centred) high = _mm256_add_epi16(high, t.offset);
    return _mm256_add_epi16(high, _mm256_mulhrs_epi16(low, t.rounds));
  }

  template <int Pairs, bool OneWindow, bool Centred>
  void run_short(const column_rows& r) const noexcept {
    const std::uint8_t *const row0 = r.rows[0], *const row1 = r.rows[1], *const row2 = r.rows[2],
                              *const row3 = r.rows[3];
    std::int16_t* out = r.out;
    const std::size_t stride = r.stride;
    const __m256i offset = _mm256_set1_epi16(static_cast<short>(r.offset));
    for (std::size_t half = 0; half < 2 * short_.size(); ++half) {
      const short_group& g = short_[half / 2];
      const std::size_t lane = half % 2 * 2, at = 16 * lane;
      const __m256i pick = table(g.pick + at);
      const short_tables t{.pick = pick,
                           .later = OneWindow ? _mm256_add_epi8(pick, _mm256_set1_epi8(2)) : pick,
                           .high = {table(g.high[0] + at), table(g.high[1] + at)},
                           .low = {table(g.low[0] + at), table(g.low[1] + at)},
                           .rounds = _mm256_set1_epi16(512),
                           .offset = offset,
                           .base = {g.base[lane], g.base[lane + 1]}};
      store(out, short_sums<Pairs, OneWindow, Centred>(row0, t));
      store(out + stride, short_sums<Pairs, OneWindow, Centred>(row1, t));
      store(out + 2 * stride, short_sums<Pairs, OneWindow, Centred>(row2, t));
      store(out + 3 * stride, short_sums<Pairs, OneWindow, Centred>(row3, t));
      out += 16;
    }
  }

  template <bool OneWindow>
  void run_medium(const column_rows& r) const noexcept {
    clamps_ ? run_medium<OneWindow, true>(r) : run_medium<OneWindow, false>(r);
  }

  template <bool OneWindow, bool Clamps>
  void run_medium(const column_rows& r) const noexcept {
    const __m256i two_samples_later = _mm256_set1_epi16(2);   // 0x80 still yields zero
    const __m256i half = _mm256_set1_epi32(32 + (r.offset << 6));
    const __m256i least = _mm256_set1_epi16(static_cast<short>(r.offset));
    const __m256i largest = _mm256_set1_epi16(static_cast<short>(r.offset + largest_column_sum));
    for (std::size_t g = 0; g < medium_.size(); ++g) {
      const medium_group& group = medium_[g];
      __m256i sums[4][2];
      for (auto& s : sums) s[0] = s[1] = half;
      for (std::size_t part = 0; part < 2; ++part) {
        __m256i pick = table(group.pick[part]), windows[4];
        const std::ptrdiff_t base0 = group.base[part][0], base1 = group.base[part][1];
        for (std::size_t k = 0; k < 4; ++k) windows[k] = window(r.rows[k] + base0, r.rows[k] + base1);
        for (std::size_t p = 0; p < pairs_; ++p) {
          const __m256i weights = table(group.weights[p][part]);
          for (std::size_t k = 0; k < 4; ++k) {
            const std::uint8_t* row = r.rows[k] + 2 * p;
            const __m256i bytes = OneWindow ? windows[k] : window(row + base0, row + base1);
            const __m256i samples = _mm256_shuffle_epi8(bytes, pick);
            sums[k][part] = _mm256_add_epi32(sums[k][part], _mm256_madd_epi16(samples, weights));
          }
          if constexpr (OneWindow) pick = _mm256_add_epi8(pick, two_samples_later);
        }
      }
      for (std::size_t k = 0; k < 4; ++k) {
        __m256i words = _mm256_packs_epi32(_mm256_srai_epi32(sums[k][0], 6), _mm256_srai_epi32(sums[k][1], 6));
        if constexpr (Clamps) words = _mm256_min_epi16(_mm256_max_epi16(words, least), largest);
        store(r.out + k * r.stride + 16 * g, words);
      }
    }
  }

  void run_long(const column_rows& r) const noexcept {
    for (std::size_t k = 0; k < 4; ++k)
      for (std::size_t block = 0; block < padded(); block += 8)
        store_long(r.out + k * r.stride, block, sums_of_8(r.rows[k], block),
                   {.half = 32, .shift = 6, .offset = r.offset, .clamps = clamps_});
  }

  static __m256i words(const std::uint8_t* from) noexcept {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static __m256i words(const std::int16_t* from) noexcept { return load(from); }

  static __m256i sums_of_4(const __m256i* p) noexcept {
    return _mm256_hadd_epi32(_mm256_hadd_epi32(p[0], p[1]), _mm256_hadd_epi32(p[2], p[3]));
  }

  template <class Sample>
  __m256i sums_of_8(const Sample* row, std::size_t block) const noexcept {
    __m256i part[8];
    for (std::size_t j = 0; j < 8; ++j) {
      const Sample* from = row + long_.first[block + j];
      const std::int16_t* weights = long_.weights.data() + (block + j) * long_.chunks * 16;
      part[j] = _mm256_madd_epi16(words(from), load(weights));
      for (std::size_t chunk = 1; chunk < long_.chunks; ++chunk)
        part[j] = _mm256_add_epi32(part[j], _mm256_madd_epi16(words(from + 16 * chunk), load(weights + 16 * chunk)));
    }
    const __m256i low = sums_of_4(part), high = sums_of_4(part + 4);   // each lane contains half of each sum
    return _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31));
  }

  static void store_long(std::int16_t* out, std::size_t block, __m256i sums, const rounding& r) noexcept {
    __m256i rounded = _mm256_sra_epi32(_mm256_add_epi32(sums, _mm256_set1_epi32(r.half)), _mm_cvtsi32_si128(r.shift));
    if (r.clamps)
      rounded = _mm256_min_epi32(_mm256_max_epi32(rounded, _mm256_setzero_si256()),
                                 _mm256_set1_epi32(largest_column_sum));
    const __m256i shifted = _mm256_add_epi32(rounded, _mm256_set1_epi32(r.offset));
    const __m128i packed = _mm_packs_epi32(_mm256_castsi256_si128(shifted), _mm256_extracti128_si256(shifted, 1));
    constexpr std::size_t place[4] = {0, 16, 8, 24};
    const std::size_t at = block / columns_at_once * columns_at_once + place[block % columns_at_once / 8];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + at), packed);
  }

  kind kind_ = kind::long_taps;
  std::size_t outputs_ = 0, pairs_ = 0;
  bool one_window_ = false, clamps_ = false;
  bool wide_ = false;   // whether short and medium taps are summed in registers of 512 bits
  aligned_vector<short_group> short_;
  aligned_vector<medium_group> medium_;
  avx512_medium_columns wide_medium_;
  long_column_taps long_;
};

}}}   // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
