// The inverse DCTs of inverse_dct.hpp, with the vector instructions of the processor.
//
//   const mr::detail::dct_kernels k = mr::detail::dct_kernels::best();
//   bool tame = k.pair[3](coefficients, q, {samples, stride_bytes});    // 8 x 8 samples of each of two blocks
//   // k.pair[0], [1], [2]: 1, 2 x 2 and 4 x 4 samples of each block
//
// All versions produce the same samples. If a value of the pair is "wild" (too large, see inverse_dct.hpp), the
// functions return false and the samples are undefined.
// Threads: pure functions; any thread.
#pragma once

#include <millrace/image/jpeg/baseline/inverse_dct.hpp>
#include <millrace/simd/cpu_features.hpp>
#include <millrace/simd/words.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#define MILLRACE_WIDE_KERNELS
#define MILLRACE_KERNELS <millrace/image/jpeg/baseline/inverse_dct_body.inc>
#include <millrace/simd/for_each_layer.inc>
#define MILLRACE_KERNELS <millrace/image/jpeg/baseline/reduced_dct_body.inc>
#include <millrace/simd/for_each_layer.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct dct_kernels {
  using pair_function = bool (*)(std::int16_t*, const dequantiser&, dct_target) noexcept;

  /// Functions that transform two adjacent blocks, and set the coefficients to 0. pair[0] to pair[3] write blocks with
  /// sides of 1, 2, 4 and 8 samples.
  std::array<pair_function, 4> pair{reduced_dct::one, reduced_dct::two, reduced_dct::four, inverse_dct_pair};
  /// A function that transforms two consecutive pairs, which are four blocks of 8 x 8 samples. The pointer is null if
  /// the processor has no AVX-512. The function returns false if a value is wild.
  pair_function quad = nullptr;

  static dct_kernels best() noexcept {
    dct_kernels k;
#if defined __x86_64__ || defined __aarch64__
    if (!cpu_has_word_layer()) return k;
    k.pair = {reduced_dct::one, word_layer::dct_to_two, word_layer::dct_to_four, word_layer::dct_to_eight};
#endif
#ifdef __x86_64__
    static_assert(avx512::second_pair == pair_coefficients);
    if (cpu_has_wide_vectors()) k.quad = avx512::dct_to_eight;
#endif
    return k;
  }
};

}}}   // namespace millrace::detail
