// The kernels of a plane_resizer, implemented with AVX2 or NEON instructions.
//
//   mr::detail::basic_plane_resizer<mr::detail::vector_plane_kernels> r;   // only if cpu_has_word_layer()
//
// Shapes, units, errors, threads: see pixel_target.hpp, fancy_upsampling.hpp, column_kernels.hpp, row_kernels.hpp.
#pragma once

#include <millrace/image/resize/basic_plane_resizer.hpp>
#include <millrace/image/resize/column_kernels_avx2.hpp>
#include <millrace/image/resize/column_kernels_neon.hpp>
#include <millrace/image/resize/fancy_upsampling.hpp>
#include <millrace/image/resize/pixel_target.hpp>
#include <millrace/image/resize/row_kernels.hpp>
#include <millrace/image/resize/tap_weights_avx2.hpp>
#include <millrace/simd/words.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>

#define MILLRACE_WIDE_KERNELS
#define MILLRACE_KERNELS <millrace/image/resize/planes_body.inc>
#include <millrace/simd/for_each_layer.inc>
#define MILLRACE_KERNELS <millrace/image/resize/plane_numbers_body.inc>
#include <millrace/simd/for_each_layer.inc>

#if defined __x86_64__ || defined __aarch64__

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct vector_plane_kernels {
#ifdef __x86_64__
  using taps = avx2::tap_weights;
#else
  using taps = portable_taps;   // fast enough: computing the taps is only 2 % of the instructions for an image
#endif
  using tap_columns = word_layer::tap_columns;
  using upsampling = word_layer::upsampling;
  using plane_rows = word_layer::plane_rows;
  using plane_numbers = word_layer::plane_numbers;
};

}}}   // namespace millrace::detail

#endif
