// The word layers: operations on registers of words (16 bits), quads (32), octs (64), bytes and floats, with equal
// names for AVX2 (words_avx2.inc) and NEON (words_neon.inc). AVX-512 with VNNI and VBMI (words_avx512.inc) is a second
// layer of x86-64, for the few kernels that are faster with it.
//
//   #define MILLRACE_WIDE_KERNELS                                      // also for AVX-512
//   #define MILLRACE_KERNELS <millrace/image/jpeg/baseline/inverse_dct_body.inc>
//   #include <millrace/simd/for_each_layer.inc>                        // compiles the kernels for each layer
//
// Kernels (here: functions for the CPU that use these operations) are written once, for all layers. All layers have the
// same operations with the same results per block. A block is 128 bits. A register has one block with NEON, two with
// AVX2, and four with AVX-512. No operation moves data between blocks, except where its comment says so. The constant
// `blocks` is the number of blocks in a register. The constants `vector_words`, `vector_quads` and so on are the
// numbers of words, of quads and so on in a register. On x86-64, `word_layer` is the namespace of the AVX2 layer, and
// `wide_layer` that of the AVX-512 layer. On aarch64, both names refer to the namespace of the NEON layer.
// cpu_has_word_layer() of cpu_features.hpp returns whether this CPU has the instructions of `word_layer`. Targets other
// than x86-64 and aarch64 do not have a layer. All functions are inlined. Call them only from functions that are
// compiled for the same instructions. Threads: any; all functions except stores are pure.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#elif defined __aarch64__
#include <arm_neon.h>
#endif

namespace millrace { inline namespace MILLRACE_ABI {
struct f16;   // of base/half.hpp, which simd must not include
struct bf16;
}}   // namespace millrace

#define MILLRACE_WIDE_KERNELS
#define MILLRACE_KERNELS <millrace/simd/words_common.inc>
#include <millrace/simd/for_each_layer.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

#ifdef __x86_64__
namespace word_layer = avx2;
namespace wide_layer = avx512;
#elif defined __aarch64__
namespace word_layer = neon;
namespace wide_layer = neon;
#endif

}}}   // namespace millrace::detail
