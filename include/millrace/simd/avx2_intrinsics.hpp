// Includes the vector intrinsics of x86-64 processors, and nothing on other processors.
//
//   #include <millrace/simd/avx2_intrinsics.hpp>
//   [[gnu::target("avx2")]] __m256i zero() { return _mm256_setzero_si256(); }
//
// Threads: not applicable.
#pragma once

#ifdef __x86_64__
#include <immintrin.h>
#endif
