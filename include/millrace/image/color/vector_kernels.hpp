// The kernels of image/color with AVX2 or NEON. The results equal those of the portable kernels.
//
//   mr::detail::gaussian_blur<mr::detail::word_layer::gaussian> blur;
//   if (mr::detail::cpu_has_word_layer()) blur.run(pixels, mr::detail::gaussian_weights_of(9, 1.2));
//
// Shapes, units, errors, threads: see the headers of the portable kernels.
#pragma once

#include <millrace/image/color/box_blur.hpp>
#include <millrace/image/color/gaussian_blur.hpp>
#include <millrace/image/color/hue_kernels.hpp>
#include <millrace/image/color/mix_kernels.hpp>
#include <millrace/image/color/pixel_kernels.hpp>
#include <millrace/image/color/sharpen_kernels.hpp>
#include <millrace/simd/byte_tables.hpp>
#include <millrace/simd/cpu_features.hpp>
#include <millrace/simd/words.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#define MILLRACE_KERNELS <millrace/image/color/blur_body.inc>
#include <millrace/simd/for_each_layer.inc>
#define MILLRACE_KERNELS <millrace/image/color/colors_body.inc>
#include <millrace/simd/for_each_layer.inc>
