// Includes the word layer, a set of vector operations, for the target: words_avx2.hpp or words_neon.hpp. On x86-64,
// words_avx512.hpp is a second layer, for a few kernels.
//
//   #include <millrace/simd/words.hpp>
//   #define MILLRACE_KERNELS <millrace/image/resize/rows_body.inc>
//   #include <millrace/simd/for_each_layer.inc>              // compiles the kernels for each layer
//
// `word_layer` is the namespace of the layer. cpu_has_word_layer() of cpu_features.hpp returns whether this CPU has the
// layer's instructions. Targets other than x86-64 and aarch64 do not have a layer.
// Threads: not applicable.
#pragma once

#include <millrace/simd/words_avx2.hpp>
#include <millrace/simd/words_avx512.hpp>
#include <millrace/simd/words_neon.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

#ifdef __x86_64__
namespace word_layer = avx2;
#elif defined __aarch64__
namespace word_layer = neon;
#endif

}}}   // namespace millrace::detail
