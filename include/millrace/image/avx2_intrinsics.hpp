// The intrinsics of AVX2, FMA and F16C, and as little else as the compiler allows.
//
//   #include <millrace/image/avx2_intrinsics.hpp>
//   [[gnu::target("avx2")]] __m256i zero() { return _mm256_setzero_si256(); }
//
// GCC's <immintrin.h> is mostly AVX-512 and costs an eighth of what the library costs a compiler. Its parts refuse to
// be included by themselves, by asking for the whole one's guard: that counts as set for as long as they are read.
// Whoever includes <immintrin.h> later gets all of it. Threads: does not matter.
#pragma once

#ifdef __x86_64__

#if defined(__GNUC__) && !defined(__clang__) && !defined(_IMMINTRIN_H_INCLUDED)
#include <smmintrin.h>
#define _IMMINTRIN_H_INCLUDED
#include <avxintrin.h>

#include <avx2intrin.h>
#include <f16cintrin.h>
#include <fmaintrin.h>
#undef _IMMINTRIN_H_INCLUDED
#else
#include <immintrin.h>
#endif

#endif
