// The blends of row_kernels.hpp with AVX-512: the same bytes, 32 columns in one register.
//
//   const mr::detail::row_output to{.bytes = row, .columns = 224, .streams = true};
//   if (!mr::detail::avx512_rows::blend_rgb(taps, to)) mr::detail::avx2::rows::blend_rgb(taps, to);
//
// These kernels process only rows whose stores bypass the cache, with a usual number of taps (weighted source rows).
// Further loops would increase the compile time of programs.
// Rows are in the order of avx2_columns: in each 32 columns, the quarters of a register contain columns 0-7, 16-23,
// 8-15 and 24-31. Shapes, units, errors, threads: see row_kernels.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/resize/row_kernels.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <millrace/simd/avx512_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The position of each interleaved byte in two registers: one contains red and green, eight bytes each per quarter,
/// the other blue.
struct avx512_interleaving {
  alignas(64) std::uint8_t from[96];
  constexpr avx512_interleaving() : from() {
    constexpr unsigned quarter_of[4] = {0, 2, 1, 3};   // the quarter of each eight columns
    for (unsigned p = 0; p < 32; ++p)
      for (unsigned c = 0; c < 3; ++c)
        from[3 * p + c] = static_cast<std::uint8_t>(16 * quarter_of[p / 8] + p % 8 + 8 * c + (c == 2 ? 48 : 0));
  }
};

/// Converts 32 values of each color to 96 interleaved bytes.
class avx512_interleaver {
 public:
  avx512_interleaver() noexcept
      : first_(_mm512_load_si512(tables.from)),
        rest_(_mm512_castsi256_si512(_mm256_load_si256(reinterpret_cast<const __m256i*>(tables.from + 64)))) {}

  void stream(__m512i r, __m512i g, __m512i b, std::uint8_t* to) const noexcept {
    const __m512i red_green = _mm512_packus_epi16(r, g), blue = _mm512_packus_epi16(b, b);
    const __m512i first = _mm512_permutex2var_epi8(red_green, first_, blue);
    auto* out = reinterpret_cast<__m256i*>(to);
    _mm256_stream_si256(out, low_half(first));
    _mm256_stream_si256(out + 1, high_half(first));
    _mm256_stream_si256(out + 2, low_half(_mm512_permutex2var_epi8(red_green, rest_, blue)));
  }

 private:
  // Does not use the intrinsics, because g++ 12 warns about their undefined parts.
  static __m256i low_half(__m512i v) noexcept { return __builtin_shufflevector(v, v, 0, 1, 2, 3); }
  static __m256i high_half(__m512i v) noexcept { return __builtin_shufflevector(v, v, 4, 5, 6, 7); }

  static constexpr avx512_interleaving tables{};

  __m512i first_, rest_;
};

struct avx512_rows {
  /// Returns false if this number of taps has no loop.
  static bool blend_rgb(const row_taps& t, const row_output& to) noexcept {
    switch (t.count) {
      case 2: return rgb<2>(t, to);
      case 3: return rgb<3>(t, to);
      case 4: return rgb<4>(t, to);
      case 5: return rgb<5>(t, to);
      default: return false;
    }
  }

  /// Returns false if one of the numbers of taps has no loop.
  static bool blend_ycc(const row_taps& luma, const row_taps& chroma, const row_output& to) noexcept {
    if (luma.clamps) return false;
    if (luma.count == 2 && chroma.count == 2) return ycc<2, 2>(luma, chroma, to);
    if (luma.count == 2 && chroma.count == 3) return ycc<2, 3>(luma, chroma, to);
    if (luma.count == 3 && chroma.count == 3) return ycc<3, 3>(luma, chroma, to);
    return false;
  }

 private:
  struct colors {
    __m512i r, g, b;
  };

  /// The weights and rows of one kind of plane, in registers.
  template <std::size_t Count>
  struct taps_in_registers {
    const std::int16_t* rows[Count];
    __m512i weights[Count];

    template <class Weight>
    taps_in_registers(const row_taps& t, const Weight& weight) noexcept {
      for (std::size_t k = 0; k < Count; ++k) {
        rows[k] = t.rows[k];
        weights[k] = _mm512_set1_epi16(weight(t.weights[k]));
      }
    }

    [[gnu::always_inline]] inline __m512i sum(std::size_t x) const noexcept {
      __m512i total = _mm512_mulhrs_epi16(_mm512_loadu_si512(rows[0] + x), weights[0]);
      for (std::size_t k = 1; k < Count; ++k)
        total = _mm512_adds_epi16(total, _mm512_mulhrs_epi16(_mm512_loadu_si512(rows[k] + x), weights[k]));
      return total;
    }
  };

  /// Streams the colors that make.at(x) returns for every 32 columns.
  template <class Make>
  [[gnu::always_inline]] static inline bool write(const row_output& to, const Make& make) noexcept {
    std::uint8_t* const bytes = to.bytes;
    const avx512_interleaver interleaver;
    for (std::size_t x = 0, columns = to.columns; x < columns; x += columns_at_once) {
      const colors rgb = make.at(x);
      interleaver.stream(rgb.r, rgb.g, rgb.b, bytes + 3 * x);
    }
    return true;
  }

  template <std::size_t Count>
  struct rgb_colors {
    taps_in_registers<Count> taps;
    std::size_t stride;

    [[gnu::always_inline]] inline colors at(std::size_t x) const noexcept {
      const __m512i rounds = _mm512_set1_epi16(256);
      return {_mm512_mulhrs_epi16(taps.sum(x), rounds), _mm512_mulhrs_epi16(taps.sum(x + stride), rounds),
              _mm512_mulhrs_epi16(taps.sum(x + 2 * stride), rounds)};
    }
  };

  template <std::size_t Count>
  static bool rgb(const row_taps& t, const row_output& to) noexcept {
    return write(to, rgb_colors<Count>{{t, row_weights::rgb}, t.plane_stride});
  }

  static std::int16_t unchanged(std::int16_t weight) noexcept { return weight; }

  template <std::size_t Luma, std::size_t Chroma>
  struct ycc_colors {
    taps_in_registers<Luma> luma;
    taps_in_registers<Chroma> blue_taps, red_taps;
    std::size_t stride;

    [[gnu::always_inline]] inline colors at(std::size_t x) const noexcept {
      const __m512i y = _mm512_add_epi16(luma.sum(x), _mm512_set1_epi16(32));
      const __m512i blue = blue_taps.sum(x), red = red_taps.sum(x + stride);
      const __m512i less_green =
          _mm512_add_epi16(_mm512_mulhrs_epi16(blue, _mm512_set1_epi16(row_weights::green_of_blue)),
                           _mm512_mulhrs_epi16(red, _mm512_set1_epi16(row_weights::green_of_red)));
      return {_mm512_srai_epi16(_mm512_adds_epi16(y, red), 6), _mm512_srai_epi16(_mm512_sub_epi16(y, less_green), 6),
              _mm512_srai_epi16(_mm512_adds_epi16(y, blue), 6)};
    }
  };

  template <std::size_t Luma, std::size_t Chroma>
  static bool ycc(const row_taps& luma, const row_taps& chroma, const row_output& to) noexcept {
    return write(to, ycc_colors<Luma, Chroma>{{luma, unchanged}, {chroma, row_weights::blue},
                                            {chroma, row_weights::red}, chroma.plane_stride});
  }
};

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
