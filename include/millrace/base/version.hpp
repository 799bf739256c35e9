// The version of Millrace and the inline namespace that carries it.
//
//   static_assert(MILLRACE_VERSION_MAJOR == 0);
//
// Every name lives in MILLRACE_ABI, an inline namespace of `millrace`: two libraries built against different versions,
// or one with CUDA and one without, link together without mixing their types. Users write `millrace::` alone.
#pragma once

#define MILLRACE_VERSION_MAJOR 0
#define MILLRACE_VERSION_MINOR 1
#define MILLRACE_VERSION_PATCH 0

// MILLRACE_CUDA, and MILLRACE_NVTX with it, are set by the build dependency, never guessed from the headers that happen
// to be installed.
#if defined MILLRACE_CUDA && defined MILLRACE_NVTX
#define MILLRACE_ABI v0_1_cuda_nvtx
#elif defined MILLRACE_CUDA
#define MILLRACE_ABI v0_1_cuda
#else
#define MILLRACE_ABI v0_1
#endif
