// The intrinsics of AVX2, FMA and F16C, and as little else as the compiler allows.
//
//   #include <millrace/image/simd/avx2_intrinsics.hpp>
//   [[gnu::target("avx2")]] __m256i zero() { return _mm256_setzero_si256(); }
//
// <immintrin.h> is mostly AVX-512 and costs g++ an eighth, clang++ a tenth of what the library costs. Its parts refuse
// to be included by themselves, by asking for the whole one's guard: that counts as set for as long as they are read.
// Whoever includes <immintrin.h> later gets all of it. Versions of clang that this was not tried with are left alone.
// Threads: does not matter.
#pragma once

#ifdef __x86_64__

#if !defined(_IMMINTRIN_H_INCLUDED) && !defined(__IMMINTRIN_H) && (!defined(__clang__) || __clang_major__ <= 14)
#include <smmintrin.h>
#define _IMMINTRIN_H_INCLUDED   // g++'s
#define __IMMINTRIN_H           // clang's
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
