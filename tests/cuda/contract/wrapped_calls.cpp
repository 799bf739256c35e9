#include "wrapped_calls.hpp"

#include <cuda_runtime_api.h>

#include <atomic>

namespace {

thread_local long thread_waits = 0;
std::atomic<long> resources{0};

}  // namespace

wrapped_calls::wrapped_calls() : wrapped_calls(thread_waits, resources.load()) {}

// meson.build also lists each name, as an argument of the linker.
#define MILLRACE_COUNTED(counter, name, parameters, arguments) \
  extern "C" cudaError_t __real_##name parameters;             \
  extern "C" cudaError_t __wrap_##name parameters;             \
  extern "C" cudaError_t __wrap_##name parameters {            \
    ++counter;                                                 \
    return __real_##name arguments;                            \
  }

// The linker prescribes these identifiers with two underscores.
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wreserved-identifier"

MILLRACE_COUNTED(thread_waits, cudaStreamSynchronize, (cudaStream_t stream), (stream))
MILLRACE_COUNTED(thread_waits, cudaEventSynchronize, (cudaEvent_t event), (event))

MILLRACE_COUNTED(resources, cudaMalloc, (void** memory, std::size_t bytes), (memory, bytes))
MILLRACE_COUNTED(resources, cudaFree, (void* memory), (memory))
MILLRACE_COUNTED(resources, cudaHostAlloc, (void** memory, std::size_t bytes, unsigned flags),
                 (memory, bytes, flags))
MILLRACE_COUNTED(resources, cudaFreeHost, (void* memory), (memory))
MILLRACE_COUNTED(resources, cudaHostRegister, (void* memory, std::size_t bytes, unsigned flags),
                 (memory, bytes, flags))
MILLRACE_COUNTED(resources, cudaHostUnregister, (void* memory), (memory))
MILLRACE_COUNTED(resources, cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), (stream, flags))
MILLRACE_COUNTED(resources, cudaStreamDestroy, (cudaStream_t stream), (stream))
MILLRACE_COUNTED(resources, cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), (event, flags))
MILLRACE_COUNTED(resources, cudaEventDestroy, (cudaEvent_t event), (event))

#undef MILLRACE_COUNTED
