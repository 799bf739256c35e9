// The kernels of warp.hpp with the vector instructions of the processor, for four pixels at a time. The results equal
// those of the portable kernels.
//
//   mr::detail::warp<mr::detail::word_layer::warping> w;
//   if (mr::detail::cpu_has_word_layer()) w.run(pixels, map, mr::detail::warp_filter::bilinear, {0, 0, 0});
//
// Channel values are computed in float and truncated to integers. Rounding errors can change the result only if a value
// is close to an integer. Pixels with such a value are recomputed in double. Errors, threads: see warp.hpp.
#pragma once

#include <millrace/image/color/unfused.hpp>
#include <millrace/image/warp/warp.hpp>
#include <millrace/simd/points.hpp>
#include <millrace/simd/words.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#define MILLRACE_KERNELS <millrace/image/warp/warp_body.inc>
#include <millrace/simd/for_each_layer.inc>
