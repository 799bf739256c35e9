// The kernels of a plane_resizer with the vector instructions of the processor, one set for each word layer.
//
//   mr::detail::basic_plane_resizer<mr::detail::avx2_plane_kernels> r;       // only if cpu_has_avx2()
//
// The rows, the colors and the numbers have the same method for AVX2 and NEON: see upsampling_body.inc, rows_body.inc
// and numbers_body.inc. The columns have separate files.
// Shapes, units, errors, threads: see pixel_target.hpp, fancy_upsampling.hpp, column_kernels.hpp, row_kernels.hpp.
#pragma once

#include <millrace/image/resize/column_kernels_avx2.hpp>
#include <millrace/image/resize/fancy_upsampling.hpp>
#include <millrace/image/resize/fancy_upsampling_avx512.hpp>
#include <millrace/image/resize/pixel_target.hpp>
#include <millrace/image/resize/row_kernels.hpp>
#include <millrace/image/resize/row_kernels_avx512.hpp>
#include <millrace/image/resize/tap_weights_avx2.hpp>
#include <millrace/simd/pixel_words.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#define MILLRACE_KERNELS <millrace/image/resize/upsampling_body.inc>
#include <millrace/simd/for_each_layer.inc>
#define MILLRACE_KERNELS <millrace/image/resize/rows_body.inc>
#include <millrace/simd/for_each_layer.inc>
#define MILLRACE_KERNELS <millrace/image/resize/numbers_body.inc>
#include <millrace/simd/for_each_layer.inc>

#ifdef __x86_64__

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct avx2_plane_kernels {
  using taps = avx2_taps;
  using upsampling = avx2::upsampling;
  using columns = avx2_columns;
  using rows = avx2::rows;
  using numbers = avx2::numbers;
};

}}}  // namespace millrace::detail

#endif
