#include "wrapped_calls.hpp"

#include <cuda_runtime_api.h>

#include <atomic>

namespace {

thread_local long waits_here = 0;
std::atomic<long> made_anywhere{0};

}  // namespace

wrapped_calls::wrapped_calls() : wrapped_calls(waits_here, made_anywhere.load()) {}

// Each name stands in meson.build as well, as an argument of the linker.
#define MILLRACE_COUNTED(counter, name, parameters, arguments) \
  extern "C" cudaError_t __real_##name parameters;             \
  extern "C" cudaError_t __wrap_##name parameters;             \
  extern "C" cudaError_t __wrap_##name parameters {            \
    ++counter;                                                 \
    return __real_##name arguments;                            \
  }

// Identifiers with two underscores are the linker's own here.
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wreserved-identifier"

MILLRACE_COUNTED(waits_here, cudaStreamSynchronize, (cudaStream_t stream), (stream))
MILLRACE_COUNTED(waits_here, cudaEventSynchronize, (cudaEvent_t event), (event))

MILLRACE_COUNTED(made_anywhere, cudaMalloc, (void** memory, std::size_t bytes), (memory, bytes))
MILLRACE_COUNTED(made_anywhere, cudaFree, (void* memory), (memory))
MILLRACE_COUNTED(made_anywhere, cudaHostAlloc, (void** memory, std::size_t bytes, unsigned flags),
                 (memory, bytes, flags))
MILLRACE_COUNTED(made_anywhere, cudaFreeHost, (void* memory), (memory))
MILLRACE_COUNTED(made_anywhere, cudaHostRegister, (void* memory, std::size_t bytes, unsigned flags),
                 (memory, bytes, flags))
MILLRACE_COUNTED(made_anywhere, cudaHostUnregister, (void* memory), (memory))
MILLRACE_COUNTED(made_anywhere, cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), (stream, flags))
MILLRACE_COUNTED(made_anywhere, cudaStreamDestroy, (cudaStream_t stream), (stream))
MILLRACE_COUNTED(made_anywhere, cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), (event, flags))
MILLRACE_COUNTED(made_anywhere, cudaEventDestroy, (cudaEvent_t event), (event))

#undef MILLRACE_COUNTED
