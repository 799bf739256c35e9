// Defines the version of Millrace and the inline namespace that carries it.
//
//   static_assert(MILLRACE_VERSION_MAJOR == 0);
//
// Every name lives in MILLRACE_ABI, an inline namespace of `millrace`. Libraries built against different versions, or
// with and without CUDA, can therefore be linked together without mixing their types. Users write only `millrace::`.
#pragma once

#define MILLRACE_VERSION_MAJOR 0
#define MILLRACE_VERSION_MINOR 1
#define MILLRACE_VERSION_PATCH 0

// The build dependency sets MILLRACE_CUDA, and with it MILLRACE_NVTX. They are never guessed from the headers that
// happen to be installed. MILLRACE_COMPILED says that the program links the compiled library: headers then only
// declare what does not depend on the user's types (x.hpp), and millrace/compiled.cpp defines it (x.ipp). The two kinds
// of objects have names in different namespaces, so that a program that mixes them does not link.
#ifdef MILLRACE_COMPILED
#define MILLRACE_INLINE
#define MILLRACE_ABI_OF(features) v0_1_compiled##features
#else
#define MILLRACE_INLINE inline
#define MILLRACE_ABI_OF(features) v0_1##features
#endif
#if defined MILLRACE_CUDA && defined MILLRACE_NVTX
#define MILLRACE_ABI MILLRACE_ABI_OF(_cuda_nvtx)
#elif defined MILLRACE_CUDA
#define MILLRACE_ABI MILLRACE_ABI_OF(_cuda)
#else
#define MILLRACE_ABI MILLRACE_ABI_OF()
#endif

// The mark of functions that run on the host and in kernels.
#ifdef __CUDACC__
#define MILLRACE_BOTH_SIDES __host__ __device__
#else
#define MILLRACE_BOTH_SIDES
#endif
