// The kernels of row_kernels.hpp with AVX2: the same bytes, 32 columns at a time.
//
//   mr::detail::avx2_rows::blend_rgb(taps, {.bytes = row, .columns = 224, .streams = true});
//
// Each usual number of taps has its own loop, with weights and row pointers in registers. All other numbers of taps
// share one loop, because each loop costs users compile time. Rows are in the order of avx2_columns, which add_lines
// preserves. add_rows reads and writes the natural order. Shapes, units, errors, threads: see row_kernels.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/resize/row_kernels.hpp>
#include <millrace/image/resize/row_kernels_avx512.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Pixel p of channel c is moved to byte (3 p + c) mod 16 of a block of 16 bytes. Therefore each channel needs one
/// shuffle, and then blends with masks of period 3.
struct avx2_interleaving {
  alignas(32) std::uint8_t order[3][32], mask[3][32];
  constexpr avx2_interleaving() : order(), mask() {
    for (unsigned c = 0; c < 3; ++c)
      for (unsigned p = 0; p < 16; ++p) {
        const unsigned at = (3 * p + c) % 16;
        order[c][at] = order[c][at + 16] = static_cast<std::uint8_t>(p);
        mask[c][p] = mask[c][p + 16] = p % 3 == c ? 0xff : 0;
      }
  }
};

/// Converts three vectors of 32 bytes, R, G and B of 32 pixels, to 96 interleaved bytes. With three-way logic, a blend
/// is one operation; otherwise, it is two operations on Intel processors.
template <bool ThreeWayLogic>
class basic_avx2_interleaver {
 public:
  basic_avx2_interleaver() noexcept {
    for (unsigned c = 0; c < 3; ++c) {
      order_[c] = _mm256_load_si256(reinterpret_cast<const __m256i*>(tables.order[c]));
      mask_[c] = _mm256_load_si256(reinterpret_cast<const __m256i*>(tables.mask[c]));
    }
  }

  template <bool Streams>
  void put(__m256i r, __m256i g, __m256i b, std::uint8_t* to) const noexcept {
    r = _mm256_shuffle_epi8(r, order_[0]);
    g = _mm256_shuffle_epi8(g, order_[1]);
    b = _mm256_shuffle_epi8(b, order_[2]);
    const __m256i x = select(select(b, g, mask_[1]), r, mask_[0]);
    const __m256i y = select(select(b, r, mask_[2]), g, mask_[0]);
    const __m256i z = select(select(r, g, mask_[2]), b, mask_[0]);
    auto* out = reinterpret_cast<__m256i*>(to);
    const __m256i first = _mm256_permute2x128_si256(x, y, 0x20), third = _mm256_permute2x128_si256(y, z, 0x31);
    const __m256i second = _mm256_blend_epi32(z, x, 0xf0);
    if constexpr (Streams) {
      _mm256_stream_si256(out, first);
      _mm256_stream_si256(out + 1, second);
      _mm256_stream_si256(out + 2, third);
    } else {
      _mm256_storeu_si256(out, first);
      _mm256_storeu_si256(out + 1, second);
      _mm256_storeu_si256(out + 2, third);
    }
  }

 private:
  static constexpr avx2_interleaving tables{};

  /// Returns `b` where the mask has ones, else `a`. Uses inline assembly, because GCC's own blends would each compare
  /// the mask with 0.
  static __m256i select(__m256i a, __m256i b, __m256i mask) noexcept {
    if constexpr (ThreeWayLogic) {
      asm("vpternlogq $0xca, %2, %1, %0" : "+x"(mask) : "x"(b), "x"(a));
      return mask;
    } else {
      __m256i blended;
      asm("vpblendvb %3, %2, %1, %0" : "=x"(blended) : "x"(a), "x"(b), "x"(mask));
      return blended;
    }
  }

  __m256i order_[3], mask_[3];
};

struct avx2_rows {
  static void blend_rgb(const row_taps& t, const row_output& to) noexcept {
    if (to.wide_vectors && to.streams && avx512_rows::blend_rgb(t, to)) return;
    switch (t.count) {
      case 2: return rgb<2>(t, to);
      case 3: return rgb<3>(t, to);
      case 4: return rgb<4>(t, to);
      case 5: return rgb<5>(t, to);
      default: return rgb<0>(t, to);
    }
  }

  static void blend_ycc(const row_taps& luma, const row_taps& chroma, const row_output& to) noexcept {
    if (to.wide_vectors && to.streams && avx512_rows::blend_ycc(luma, chroma, to)) return;
    if (luma.clamps) return ycc<0, 0, true>(luma, chroma, to);
    static_assert(row_taps::capacity < 16);
    switch (luma.count << 4 | chroma.count) {
      case 0x22: return ycc<2, 2>(luma, chroma, to);
      case 0x23: return ycc<2, 3>(luma, chroma, to);
      case 0x33: return ycc<3, 3>(luma, chroma, to);
      case 0x43: return ycc<4, 3>(luma, chroma, to);
      case 0x44: return ycc<4, 4>(luma, chroma, to);
      default: return ycc<0, 0>(luma, chroma, to);
    }
  }

  static void add_rows(const row_addition& a) noexcept {
    const __m256i upper = weight_pair(a.weights), lower = weight_pair(a.weights + 2), half = _mm256_set1_epi32(64);
    for (std::size_t x = 0; x < a.count; x += 16) {
      const __m128i r0 = bytes(a.rows[0] + x), r1 = bytes(a.rows[1] + x);
      const __m128i r2 = bytes(a.rows[2] + x), r3 = bytes(a.rows[3] + x);
      const auto sum = [&](__m128i first, __m128i second) {
        return _mm256_add_epi32(_mm256_madd_epi16(_mm256_cvtepu8_epi16(first), upper),
                                _mm256_madd_epi16(_mm256_cvtepu8_epi16(second), lower));
      };
      __m256i low = sum(_mm_unpacklo_epi8(r0, r1), _mm_unpacklo_epi8(r2, r3));
      __m256i high = sum(_mm_unpackhi_epi8(r0, r1), _mm_unpackhi_epi8(r2, r3));
      if (!a.begins) {
        low = _mm256_add_epi32(low, load(a.sums + x));
        high = _mm256_add_epi32(high, load(a.sums + x + 8));
      }
      if (a.finished == nullptr) {
        store(a.sums + x, low);
        store(a.sums + x + 8, high);
      } else {
        const __m256i crossed = _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(low, half), 7),
                                                   _mm256_srai_epi32(_mm256_add_epi32(high, half), 7));
        store(a.finished + x, _mm256_permute4x64_epi64(crossed, 0xd8));
      }
    }
  }

  static void add_lines(const line_addition& a) noexcept {
    const __m256i upper = weight_pair(a.weights), lower = weight_pair(a.weights + 2), half = _mm256_set1_epi32(8'192);
    for (std::size_t x = 0; x < a.count; x += 16) {
      const __m256i r0 = load(a.rows[0] + x), r1 = load(a.rows[1] + x);
      const __m256i r2 = load(a.rows[2] + x), r3 = load(a.rows[3] + x);
      // Unpacks within lanes of 128 bits. Packing restores the order.
      __m256i low = _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpacklo_epi16(r0, r1), upper),
                                     _mm256_madd_epi16(_mm256_unpacklo_epi16(r2, r3), lower));
      __m256i high = _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpackhi_epi16(r0, r1), upper),
                                      _mm256_madd_epi16(_mm256_unpackhi_epi16(r2, r3), lower));
      if (!a.begins) {
        low = _mm256_add_epi32(low, load(a.sums + x));
        high = _mm256_add_epi32(high, load(a.sums + x + 8));
      }
      if (a.finished == nullptr) {
        store(a.sums + x, low);
        store(a.sums + x + 8, high);
      } else {
        store(a.finished + x, _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(low, half), 14),
                                                 _mm256_srai_epi32(_mm256_add_epi32(high, half), 14)));
      }
    }
  }

 private:
  /// Returns two weights as an operand of a 16-bit multiply-add.
  static __m256i weight_pair(const std::int16_t* weights) noexcept {
    const unsigned first = static_cast<std::uint16_t>(weights[0]), second = static_cast<std::uint16_t>(weights[1]);
    return _mm256_set1_epi32(static_cast<int>(first | second << 16));
  }

  /// The weights and rows of one kind of plane, in registers. There are `Count` taps, or t.count taps if `Count` is 0.
  template <std::size_t Count>
  struct taps_in_registers {
    const std::int16_t* rows[Count == 0 ? row_taps::capacity : Count];
    __m256i weights[Count == 0 ? row_taps::capacity : Count];
    std::size_t count;

    template <class Weight>
    taps_in_registers(const row_taps& t, const Weight& weight) noexcept : count(Count == 0 ? t.count : Count) {
      for (std::size_t k = 0; k < size(); ++k) {
        rows[k] = t.rows[k];
        weights[k] = _mm256_set1_epi16(weight(t.weights[k]));
      }
    }
    std::size_t size() const noexcept { return Count == 0 ? count : Count; }

    __m256i sum(std::size_t x) const noexcept {
      __m256i total = _mm256_mulhrs_epi16(load(rows[0] + x), weights[0]);
      for (std::size_t k = 1; k < size(); ++k)
        total = _mm256_adds_epi16(total, _mm256_mulhrs_epi16(load(rows[k] + x), weights[k]));
      return total;
    }
  };

  static __m256i load(const void* from) noexcept { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
  static void store(void* to, __m256i v) noexcept { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }
  static __m128i bytes(const std::uint8_t* from) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }

  /// Calls make(x, rgb) for every 32 columns to compute the bytes of their three colors, and writes these bytes.
  template <class Make>
  [[gnu::always_inline]] static inline void for_each_vector(const row_output& to, const Make& make) noexcept {
    if (to.planar) {
      std::uint8_t* const bytes = to.bytes;
      const std::size_t columns = to.columns, plane_bytes = to.plane_bytes;
      __m256i rgb[3];
      for (std::size_t x = 0; x < columns; x += columns_at_once) {
        make(x, rgb);
        for (std::size_t c = 0; c < 3; ++c) store(bytes + c * plane_bytes + x, rgb[c]);
      }
      return;
    }
    if (!to.streams) interleave<false, false>(to, make);
    else if (to.three_way_logic) interleave<true, true>(to, make);
    else interleave<true, false>(to, make);
  }

  template <bool Streams, bool ThreeWayLogic, class Make>
  [[gnu::always_inline]] static inline void interleave(const row_output& to, const Make& make) noexcept {
    std::uint8_t* const bytes = to.bytes;
    const std::size_t columns = to.columns;
    const basic_avx2_interleaver<ThreeWayLogic> interleaver;
    __m256i rgb[3];
    for (std::size_t x = 0; x < columns; x += columns_at_once) {
      make(x, rgb);
      interleaver.template put<Streams>(rgb[0], rgb[1], rgb[2], bytes + 3 * x);
    }
  }

  template <std::size_t Count>
  static void rgb(const row_taps& t, const row_output& to) noexcept {
    const taps_in_registers<Count> taps(t, row_weights::rgb);
    const __m256i rounds = _mm256_set1_epi16(256);
    const std::size_t stride = t.plane_stride;
    for_each_vector(to, [&](std::size_t x, __m256i (&bytes_of)[3]) {
      for (std::size_t c = 0; c < 3; ++c)
        bytes_of[c] = _mm256_packus_epi16(_mm256_mulhrs_epi16(taps.sum(x + c * stride), rounds),
                                      _mm256_mulhrs_epi16(taps.sum(x + c * stride + 16), rounds));
    });
  }

  static __m256i within(__m256i v, const row_weights::range& r) noexcept {
    return _mm256_min_epi16(_mm256_max_epi16(v, _mm256_set1_epi16(static_cast<short>(r.least))),
                            _mm256_set1_epi16(static_cast<short>(r.largest)));
  }

  template <std::size_t Luma, std::size_t Chroma, bool Clamps = false>
  static void ycc(const row_taps& luma, const row_taps& chroma, const row_output& to) noexcept {
    const taps_in_registers<Luma> y_taps(luma, [](std::int16_t w) { return w; });
    const taps_in_registers<Chroma> blue_taps(chroma, row_weights::blue), red_taps(chroma, row_weights::red);
    const __m256i half = _mm256_set1_epi16(32);
    const __m256i green_of_blue = _mm256_set1_epi16(row_weights::green_of_blue);
    const __m256i green_of_red = _mm256_set1_epi16(row_weights::green_of_red);
    const std::size_t stride = chroma.plane_stride;
    for_each_vector(to, [&](std::size_t x, __m256i (&bytes_of)[3]) {
      __m256i rgb[2][3];
      for (std::size_t part = 0; part < 2; ++part) {
        const std::size_t at = x + 16 * part;
        __m256i y = _mm256_add_epi16(y_taps.sum(at), half);
        __m256i blue = blue_taps.sum(at), red = red_taps.sum(at + stride);
        if constexpr (Clamps) {
          y = within(y, row_weights::luma_range);
          blue = within(blue, row_weights::blue_range);
          red = within(red, row_weights::red_range);
        }
        const __m256i less_green = _mm256_add_epi16(_mm256_mulhrs_epi16(blue, green_of_blue),
                                                    _mm256_mulhrs_epi16(red, green_of_red));
        rgb[part][0] = _mm256_srai_epi16(_mm256_adds_epi16(y, red), 6);
        rgb[part][1] = _mm256_srai_epi16(_mm256_sub_epi16(y, less_green), 6);
        rgb[part][2] = _mm256_srai_epi16(_mm256_adds_epi16(y, blue), 6);
      }
      for (std::size_t c = 0; c < 3; ++c) bytes_of[c] = _mm256_packus_epi16(rgb[0][c], rgb[1][c]);
    });
  }
};

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
