// Includes the word layers of the target: words_avx2.hpp or words_neon.hpp.
//
//   #include <millrace/simd/words.hpp>
//   #define MILLRACE_KERNELS <millrace/image/resize/rows_body.inc>
//   #include <millrace/simd/for_each_layer.inc>              // compiles the kernels for each layer
//
// Threads: not applicable.
#pragma once

#include <millrace/simd/words_avx2.hpp>
#include <millrace/simd/words_neon.hpp>
