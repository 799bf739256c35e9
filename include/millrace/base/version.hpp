// Defines the version of Millrace, and the inline namespace that contains all names of the library. The name of the
// namespace contains the version.
//
//   static_assert(MILLRACE_VERSION_MAJOR == 0);
//
// Every name is in MILLRACE_ABI, an inline namespace of `millrace`. The namespace differs between versions, between
// builds with and without CUDA, and between layouts of the standard library's types. Therefore object files of
// different builds do not share any definition. A call between such files does not link if its arguments have types of
// Millrace. User code does not name MILLRACE_ABI: it contains only `millrace::`.
#pragma once

// Compilers continue after #error. Therefore an include of a missing file follows each #error below, and ends the
// compilation.
#if defined __cplusplus && __cplusplus < 202002L
#error "Millrace needs C++20: add -std=c++20 (CMake: cxx_std_20, Meson: cpp_std=c++20)"
#include <the_compilation_ends_here>
#endif
#ifndef __cpp_exceptions
#error "millrace: exceptions are required: compile this file without -fno-exceptions; other files may use that flag"
#include <the_compilation_ends_here>
#endif

#include <cstddef>   // defines the macros of the standard library

#define MILLRACE_VERSION_MAJOR 0
#define MILLRACE_VERSION_MINOR 1
#define MILLRACE_VERSION_PATCH 0

// The build (the dependency of Meson, the target of CMake, or pkg-config) defines MILLRACE_CUDA and MILLRACE_NVTX. No
// header defines these macros, not even if the headers of CUDA are installed. MILLRACE_COMPILED means that the program
// links the compiled library. In this mode, a header x.hpp only declares the parts that do not depend on the user's
// types. Their definitions are in impl/x.inl, which is compiled as a part of millrace/compiled.cpp. The two modes use
// different namespaces, as different versions do. In classes that few programs use, the declarations of virtual
// functions have MILLRACE_INLINE, as their definitions do. If only the definitions had it, g++ would compile all
// virtual functions of the class in every program that includes the header.
#ifdef MILLRACE_COMPILED
#define MILLRACE_INLINE
#define MILLRACE_ABI_OF(features) v0_1_compiled##features
#else
#define MILLRACE_INLINE inline
#define MILLRACE_ABI_OF(features) v0_1##features
#endif
// Marks a function that runs rarely: once per session, epoch or shard, or for errors. In header-only mode, compilers
// optimize these functions for size, which reduces a user's compile time by a tenth. g++ also assumes that branches to
// `cold` functions are unlikely. MILLRACE_RARE_CODE marks rare lambdas, and rare functions that are always inline.
#if defined __clang__ && !defined MILLRACE_COMPILED
#define MILLRACE_RARE_CODE __attribute__((minsize))
#elif defined __OPTIMIZE__ && !defined MILLRACE_COMPILED
#define MILLRACE_RARE_CODE __attribute__((cold))
#else
#define MILLRACE_RARE_CODE
#endif
#define MILLRACE_RARE MILLRACE_INLINE MILLRACE_RARE_CODE
// The macros that are tested below change the layout of strings and containers of the standard library. If the
// namespace did not depend on these macros, files with different layouts would link, and the program would crash.
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

// Detects g++ with -ffast-math, with -Ofast, or with a flag that these options include. In this case, precise_begin.inc
// restores IEEE 754 arithmetic. The macros are read here, once, because g++ undefines them inside the regions of
// precise_begin.inc.
#if defined __FAST_MATH__ || __FINITE_MATH_ONLY__ || defined __ASSOCIATIVE_MATH__ || defined __RECIPROCAL_MATH__ || \
    defined __NO_SIGNED_ZEROS__
#define MILLRACE_FAST_MATH
#if defined __CUDACC__ && !defined __clang__
#warning "millrace: nvcc cannot restore IEEE arithmetic here: compile this file without -ffast-math"
#endif
#endif

// Marks functions that run on the host and in kernels.
#ifdef __CUDACC__
#define MILLRACE_BOTH_SIDES __host__ __device__
#else
#define MILLRACE_BOTH_SIDES
#endif

// Inlines parts of kernels in optimized builds. __OPTIMIZE__ must be tested before simd/layer_begin.inc. The pragmas in
// that file cause g++ to define __OPTIMIZE__ even in builds without optimization.
#ifdef __OPTIMIZE__
#define MILLRACE_ALWAYS_INLINE __attribute__((always_inline))
#else
#define MILLRACE_ALWAYS_INLINE
#endif
