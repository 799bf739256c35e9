// The kernels of hue_kernels.hpp with AVX2: the same bytes, 32 pixels at a time.
//
//   if (mr::detail::cpu_has_avx2()) mr::detail::avx2_hues::shift(row, 50'176, 18);
//
// Quotients are floats. Numerators are integers below 2^24, so a quotient that is not an integer is never rounded to an
// integer, and an integer quotient is exact. Shapes, units, errors, threads: see hue_kernels.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/color/hue_kernels.hpp>
#include <millrace/image/color/rgb_vectors_avx2.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <cstddef>
#include <cstdint>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Masks for each sextant of the hue: the channel with the highest value, V, and the channel with the middle value.
struct hue_choices {
  alignas(16) std::uint8_t highest[3][16], middle[3][16];
  constexpr hue_choices() : highest(), middle() {
    constexpr std::uint8_t rank[7][3] = {{0, 1, 2}, {1, 0, 2}, {2, 0, 1}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}, {0, 1, 2}};
    for (unsigned c = 0; c < 3; ++c)
      for (unsigned sextant = 0; sextant < 7; ++sextant) {
        highest[c][sextant] = rank[sextant][c] == 0 ? 0xff : 0;
        middle[c][sextant] = rank[sextant][c] == 1 ? 0xff : 0;
      }
  }
};

class avx2_hues {
 public:
  static void shift(std::uint8_t* data, std::size_t pixels, int by) noexcept {
    const avx2_rgb rgb;
    const avx2_hues hues;
    const __m256i added = _mm256_set1_epi8(static_cast<char>(by));
    avx2_rgb::for_each_32(data, pixels, [&](std::uint8_t* at) {
      rgb_bytes hsv = hues.hsv_of(rgb.load(at));
      hsv.r = _mm256_add_epi8(hsv.r, added);
      rgb.store(hues.rgb_of(hsv), at);
    });
  }

  static void to_hsv(std::uint8_t* data, std::size_t pixels) noexcept {
    const avx2_rgb rgb;
    const avx2_hues hues;
    avx2_rgb::for_each_32(data, pixels, [&](std::uint8_t* at) { rgb.store(hues.hsv_of(rgb.load(at)), at); });
  }

  static void from_hsv(std::uint8_t* data, std::size_t pixels) noexcept {
    const avx2_rgb rgb;
    const avx2_hues hues;
    avx2_rgb::for_each_32(data, pixels, [&](std::uint8_t* at) { rgb.store(hues.rgb_of(rgb.load(at)), at); });
  }

 private:
  static constexpr hue_choices choices{};

  avx2_hues() noexcept
      : lowered_hues_(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(lowered_hues.data()))),
        lowered_saturations_(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(lowered_saturations.data()))) {
    for (unsigned c = 0; c < 3; ++c) {
      highest_[c] = twice(choices.highest[c]);
      middle_[c] = twice(choices.middle[c]);
    }
  }

  static __m256i twice(const std::uint8_t* bytes) noexcept {
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes)));
  }

  /// 32 bytes as two registers of 16-bit words.
  struct words {
    __m256i low, high;
    explicit words(__m256i bytes) noexcept
        : low(_mm256_unpacklo_epi8(bytes, _mm256_setzero_si256())),
          high(_mm256_unpackhi_epi8(bytes, _mm256_setzero_si256())) {}
  };

  /// Returns the quotient, truncated. An integer quotient is reduced by one if `lowered` contains it.
  static __m256i quotient(__m256 numerator, __m256 denominator, __m256i lowered) noexcept {
    const __m256 ratio = numerator / denominator;
    const __m256i truncated = _mm256_cvttps_epi32(ratio);
    const __m256i is_exact = _mm256_castps_si256(_mm256_cmp_ps(_mm256_cvtepi32_ps(truncated), ratio, _CMP_EQ_OQ));
    const __m256i word = _mm256_permutevar8x32_epi32(lowered, _mm256_srli_epi32(truncated, 5));
    const __m256i bit = _mm256_srlv_epi32(word, _mm256_and_si256(truncated, _mm256_set1_epi32(31)));
    const __m256i less = _mm256_and_si256(_mm256_and_si256(bit, _mm256_set1_epi32(1)), is_exact);
    return _mm256_sub_epi32(truncated, less);
  }

  /// Returns the angle, 0 to 6, times the span.
  static __m256i angle(__m256i first, __m256i second, __m256i base, __m256i span) noexcept {
    const __m256i sum = _mm256_add_epi16(_mm256_sub_epi16(first, second), _mm256_mullo_epi16(base, span));
    const __m256i turn = _mm256_mullo_epi16(span, _mm256_set1_epi16(6));
    return _mm256_add_epi16(sum, _mm256_and_si256(_mm256_srai_epi16(sum, 15), turn));
  }

  /// Returns H, S and V in the members r, g and b.
  rgb_bytes hsv_of(const rgb_bytes& p) const noexcept {
    const __m256i most = _mm256_max_epu8(p.r, _mm256_max_epu8(p.g, p.b));
    const __m256i span = _mm256_sub_epi8(most, _mm256_min_epu8(p.r, _mm256_min_epu8(p.g, p.b)));
    const __m256i red = _mm256_cmpeq_epi8(p.r, most), green = _mm256_cmpeq_epi8(p.g, most);
    const auto by_highest = [&](__m256i if_red, __m256i if_green, __m256i if_blue) {
      return avx2_rgb::select(avx2_rgb::select(if_blue, if_green, green), if_red, red);
    };
    const words first(by_highest(p.g, p.b, p.r)), second(by_highest(p.b, p.r, p.g));
    const words base(by_highest(_mm256_setzero_si256(), _mm256_set1_epi8(2), _mm256_set1_epi8(4)));
    const words spans(span);
    const quads_of_32 angles = avx2_rgb::quads(angle(first.low, second.low, base.low, spans.low),
                                               angle(first.high, second.high, base.high, spans.high));
    // If the span is 0, the numerators are also 0, and denominators of 1 then yield H = S = 0.
    const __m256i one = _mm256_set1_epi8(1);
    const quads_of_32 span_quads = avx2_rgb::quads(span), positive_spans = avx2_rgb::quads(_mm256_max_epu8(span, one)),
                      highest = avx2_rgb::quads(_mm256_max_epu8(most, one));
    quads_of_32 h, s;
    for (unsigned k = 0; k < 4; ++k) {
      h.q[k] = quotient(_mm256_cvtepi32_ps(angles.q[k]) * _mm256_set1_ps(42.5F),
                        _mm256_cvtepi32_ps(positive_spans.q[k]), lowered_hues_);
      s.q[k] = quotient(_mm256_cvtepi32_ps(span_quads.q[k]) * _mm256_set1_ps(255),
                        _mm256_cvtepi32_ps(highest.q[k]), lowered_saturations_);
    }
    return {avx2_rgb::bytes(h), avx2_rgb::bytes(s), most};
  }

  struct parts {
    __m256i sextant, least;   // words
    quads_of_32 middle;       // only the first two registers are used
  };

  /// Returns the parts of 16 pixels. `h`, `s` and `v` contain 16-bit words.
  static parts parts_of(__m256i h, __m256i s, __m256i v) noexcept {
    const __m256i twice = _mm256_add_epi16(h, h);
    const __m256i sextant = _mm256_mulhi_epu16(twice, _mm256_set1_epi16(772));   // 2 h / 85
    const __m256i rest = _mm256_sub_epi16(twice, _mm256_mullo_epi16(sextant, _mm256_set1_epi16(85)));
    const __m256i odd = _mm256_cmpgt_epi16(_mm256_and_si256(sextant, _mm256_set1_epi16(1)), _mm256_setzero_si256());
    const __m256i share = avx2_rgb::select(_mm256_sub_epi16(_mm256_set1_epi16(85), rest), rest, odd);
    const __m256i scale = _mm256_sub_epi16(_mm256_set1_epi16(21'675), _mm256_mullo_epi16(s, share));
    const __m256i low = _mm256_mullo_epi16(v, scale), high = _mm256_mulhi_epu16(v, scale);
    parts result;
    result.sextant = sextant;
    const __m256 unit = _mm256_set1_ps(1.0F / 21'675.0F);
    const auto nearest = [&](__m256i products) {
      return _mm256_cvtps_epi32(_mm256_cvtepi32_ps(products) * unit);
    };
    result.middle.q[0] = nearest(_mm256_unpacklo_epi16(low, high));
    result.middle.q[1] = nearest(_mm256_unpackhi_epi16(low, high));
    const __m256i product = _mm256_add_epi16(
        _mm256_mullo_epi16(v, _mm256_sub_epi16(_mm256_set1_epi16(255), s)), _mm256_set1_epi16(128));
    result.least = _mm256_srli_epi16(_mm256_add_epi16(product, _mm256_srli_epi16(product, 8)), 8);   // / 255, rounded
    return result;
  }

  rgb_bytes rgb_of(const rgb_bytes& hsv) const noexcept {
    const words h(hsv.r), s(hsv.g), v(hsv.b);
    const parts low = parts_of(h.low, s.low, v.low), high = parts_of(h.high, s.high, v.high);
    const __m256i sextant = _mm256_packus_epi16(low.sextant, high.sextant);
    const __m256i least = _mm256_packus_epi16(low.least, high.least);
    const __m256i middle =
        avx2_rgb::bytes({{low.middle.q[0], low.middle.q[1], high.middle.q[0], high.middle.q[1]}});
    const auto channel = [&](unsigned c) {
      const __m256i lower = avx2_rgb::select(least, middle, _mm256_shuffle_epi8(middle_[c], sextant));
      return avx2_rgb::select(lower, hsv.b, _mm256_shuffle_epi8(highest_[c], sextant));
    };
    return {channel(0), channel(1), channel(2)};
  }

  __m256i lowered_hues_, lowered_saturations_, highest_[3], middle_[3];
};

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
