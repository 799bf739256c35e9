// Defines the version of Millrace and the inline namespace that carries it.
//
//   static_assert(MILLRACE_VERSION_MAJOR == 0);
//
// Every name is in MILLRACE_ABI, an inline namespace of `millrace`. It differs between versions, with and without CUDA,
// and between layouts of the standard library's types. Therefore objects of all kinds can be linked together without
// mixing their types. Users write only `millrace::`.
#pragma once

// The includes after these errors name a file that does not exist, which ends the compilation. Otherwise hundreds of
// lines would follow.
#if defined __cplusplus && __cplusplus < 202002L
#error "Millrace needs C++20: add -std=c++20 (CMake: cxx_std_20, Meson: cpp_std=c++20)"
#include <the_compilation_ends_here>
#endif
#ifndef __cpp_exceptions
#error "millrace: exceptions are required: compile this file without -fno-exceptions; other files may use that flag"
#include <the_compilation_ends_here>
#endif

#include <cstddef>   // the standard library's own macros

#define MILLRACE_VERSION_MAJOR 0
#define MILLRACE_VERSION_MINOR 1
#define MILLRACE_VERSION_PATCH 0

// The build dependency sets MILLRACE_CUDA, and with it MILLRACE_NVTX. They are never guessed from the installed
// headers. MILLRACE_COMPILED means that the program links the compiled library: then headers only declare the parts
// that do not depend on the user's types, and millrace/compiled.cpp defines them (impl/x.inl). The two kinds of objects
// use names in different namespaces, so that a program that mixes them does not link.
#ifdef MILLRACE_COMPILED
#define MILLRACE_INLINE
#define MILLRACE_ABI_OF(features) v0_1_compiled##features
#else
#define MILLRACE_INLINE inline
#define MILLRACE_ABI_OF(features) v0_1##features
#endif
// These change the layout of strings and containers, and with it the layout of Millrace's types. Without a mark, a file
// that was compiled with one of them and a file that was not would link, and crash.
#if defined _LIBCPP_VERSION
#define MILLRACE_ABI_LIBRARY _libcxx
#elif defined _GLIBCXX_DEBUG && _GLIBCXX_USE_CXX11_ABI
#define MILLRACE_ABI_LIBRARY _debug
#elif defined _GLIBCXX_DEBUG
#define MILLRACE_ABI_LIBRARY _debug_old_strings
#elif defined __GLIBCXX__ && !_GLIBCXX_USE_CXX11_ABI
#define MILLRACE_ABI_LIBRARY _old_strings
#else
#define MILLRACE_ABI_LIBRARY
#endif
#define MILLRACE_ABI_JOINED(features, library) MILLRACE_ABI_OF(features##library)
#define MILLRACE_ABI_WITH(features, library) MILLRACE_ABI_JOINED(features, library)
#if defined MILLRACE_CUDA && defined MILLRACE_NVTX
#define MILLRACE_ABI MILLRACE_ABI_WITH(_cuda_nvtx, MILLRACE_ABI_LIBRARY)
#elif defined MILLRACE_CUDA
#define MILLRACE_ABI MILLRACE_ABI_WITH(_cuda, MILLRACE_ABI_LIBRARY)
#else
#define MILLRACE_ABI MILLRACE_ABI_WITH(, MILLRACE_ABI_LIBRARY)
#endif

// g++ with -ffast-math, -Ofast or a part of them: precise_begin.inc then restores the arithmetic of IEEE 754. g++
// undefines these macros inside its regions, so they are read here, once. clang++ needs none.
#if defined __FAST_MATH__ || __FINITE_MATH_ONLY__ || defined __ASSOCIATIVE_MATH__ || \
    defined __RECIPROCAL_MATH__ || defined __NO_SIGNED_ZEROS__
#define MILLRACE_FAST_MATH
#if defined __CUDACC__ && !defined __clang__
#warning "millrace: nvcc cannot restore IEEE arithmetic here: compile this file without -ffast-math"
#endif
#endif

// The mark of functions that run on the host and in kernels.
#ifdef __CUDACC__
#define MILLRACE_BOTH_SIDES __host__ __device__
#else
#define MILLRACE_BOTH_SIDES
#endif
