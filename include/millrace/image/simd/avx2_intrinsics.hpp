// Includes the intrinsics of AVX2, FMA and F16C, and as little else as the compiler allows.
//
//   #include <millrace/image/simd/avx2_intrinsics.hpp>
//   [[gnu::target("avx2")]] __m256i zero() { return _mm256_setzero_si256(); }
//
// <immintrin.h> is mostly AVX-512. It would add an eighth (g++) or a tenth (clang++) to the library's compile time. Its
// partial headers check the include guard of <immintrin.h> and refuse to be included without it. So the guard is
// defined while they are read. A later #include <immintrin.h> still provides everything. Untested versions of clang get
// the whole <immintrin.h>.
// Threads: not relevant.
#pragma once

#ifdef __x86_64__

#if !defined(_IMMINTRIN_H_INCLUDED) && !defined(__IMMINTRIN_H) && (!defined(__clang__) || __clang_major__ <= 14)
#include <smmintrin.h>
#define _IMMINTRIN_H_INCLUDED   // the guard of g++
#define __IMMINTRIN_H           // the guard of clang++
#include <avxintrin.h>

#include <avx2intrin.h>
#include <f16cintrin.h>
#include <fmaintrin.h>
#undef _IMMINTRIN_H_INCLUDED
#undef __IMMINTRIN_H
#else
#include <immintrin.h>
#endif

#endif
