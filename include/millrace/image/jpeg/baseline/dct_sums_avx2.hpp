// Computes sums of products of input pairs for an inverse DCT, with AVX2 or with AVX-512 VNNI in 256-bit registers.
//
//   using sum = mr::detail::avx2_sums;                           // or mr::detail::vnni_sums
//   using p = mr::detail::dct_pair;
//   quads even = sum::onto<p::sum_04>(rounding, x04);            // rounding + x0 * factor + x4 * factor
//   quads last = sum::less<p::even_0_of_26, p::minus_even_0_of_26>(even, x26);   // even - x2 * factor - x6 * factor
//   words w = sum::joined<11>(even, last);                       // interleaves both, minus 11 bits of fraction
//
// The VNNI instructions are inline assembly, because a compiler accepts a builtin only in a function with a matching
// target. Both variants share all functions except the outermost one. Threads: pure functions; any thread.
#pragma once

#include <millrace/image/jpeg/baseline/inverse_dct.hpp>
#include <millrace/simd/avx2_words.hpp>

#include <array>
#include <cstddef>

#ifdef __x86_64__

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Identifies the pair of factors for the inputs x and y of a sum.
enum class dct_pair : std::size_t {
  sum_04, difference_04,
  even_0_of_26, even_1_of_26, minus_even_0_of_26, minus_even_1_of_26,
  odd_0_of_15, odd_0_of_37, odd_1_of_15, odd_1_of_37, odd_2_of_15, odd_2_of_37, odd_3_of_15, odd_3_of_37
};

/// Each factor is one 16-bit word. All factors are in one cache line, from which the processor can broadcast a pair
/// directly.
alignas(64) inline constexpr std::array<std::array<std::int16_t, 2>, 14> dct_pairs = {{
    {dct_factors::one, dct_factors::one}, {dct_factors::one, -dct_factors::one},
    {dct_factors::even_2_2, dct_factors::even_2_6}, {dct_factors::even_2_6, dct_factors::even_6_6},
    {-dct_factors::even_2_2, -dct_factors::even_2_6}, {-dct_factors::even_2_6, -dct_factors::even_6_6},
    {dct_factors::odd_1_1, dct_factors::odd_1_5}, {dct_factors::odd_1_3, dct_factors::odd_1_7},
    {dct_factors::odd_1_3, dct_factors::odd_3_5}, {dct_factors::odd_3_3, dct_factors::odd_3_7},
    {dct_factors::odd_1_5, dct_factors::odd_5_5}, {dct_factors::odd_3_5, dct_factors::odd_1_3},
    {dct_factors::odd_1_7, dct_factors::odd_1_3}, {dct_factors::odd_3_7, dct_factors::odd_7_7}}};

#define MILLRACE_AVX2 [[gnu::target("avx2"), gnu::always_inline]] inline

struct avx2_sums {
  using words = avx2::words;
  using quads = avx2::quads;

  template <dct_pair p>
  MILLRACE_AVX2 static quads of(words xy) noexcept {
    constexpr auto factors = dct_pairs[static_cast<std::size_t>(p)];
    return avx2::multiply_pairs(xy, avx2::pair_of(factors[0], factors[1]));
  }
  template <dct_pair p>
  MILLRACE_AVX2 static quads onto(quads sum, words xy) noexcept { return sum + of<p>(xy); }
  /// Subtracts the product with p, which the compiler already has from onto<p>(). The factor -p would require another
  /// multiplication.
  template <dct_pair p, dct_pair minus_p>
  MILLRACE_AVX2 static quads less(quads sum, words xy) noexcept { return sum - of<p>(xy); }
  template <int bits>
  MILLRACE_AVX2 static words joined(quads even, quads odd) noexcept { return avx2::joined<bits>(even, odd); }
};

/// May be used only in functions whose target includes avx512vl and avx512vnni.
struct vnni_sums {
  using words = avx2::words;
  using quads = avx2::quads;

  template <dct_pair p>
  MILLRACE_AVX2 static quads of(words xy) noexcept { return avx2_sums::of<p>(xy); }
  template <dct_pair p>
  MILLRACE_AVX2 static quads onto(quads sum, words xy) noexcept {
    asm("vpdpwssd %2%{1to8%}, %1, %0" : "+v"(sum) : "v"(xy), "m"(dct_pairs[static_cast<std::size_t>(p)]));
    return sum;
  }
  template <dct_pair p, dct_pair minus_p>
  MILLRACE_AVX2 static quads less(quads sum, words xy) noexcept { return onto<minus_p>(sum, xy); }
  template <int bits>
  MILLRACE_AVX2 static words joined(quads even, quads odd) noexcept {
    quads joint = even >> bits;
    // Selects bits of %0 where %2 has ones, and bits of %1 elsewhere. A blend instruction can use only half of the
    // registers.
    asm("vpternlogd $0xe4, %2, %1, %0"
        : "+v"(joint) : "v"(bits <= 16 ? odd << (16 - bits) : odd >> (bits - 16)), "v"(avx2::quads_of(0xffff)));
    return reinterpret_cast<words>(joint);
  }
};

#undef MILLRACE_AVX2

}}}  // namespace millrace::detail

#endif
