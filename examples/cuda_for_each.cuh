// What the examples' own kernels share: a launch with one thread for each number that is made, memory, blocking copies.
//
//   struct twice {                                                  // a kernel: its arguments, and what thread i does
//     float* values;
//     __host__ __device__ void operator()(std::size_t i) const { values[i] *= 2; }
//   };
//   for_each(count, twice{values}, {.stream = stream, .on_host = false});      // returns at once
//
// With `on_host` the same bodies run one after the other on the host, in host memory, and CUDA is not called: slow, but
// their arithmetic can be looked at where there is no GPU. Errors of CUDA end the program with a message.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(status));
  std::exit(1);
}

struct launch_options {
  cudaStream_t stream = nullptr;
  bool on_host = false;
};

template <class Body>
__global__ void for_each_kernel(std::size_t count, Body body) {
  const std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (i < count) body(i);
}

template <class Body>
void for_each(std::size_t count, const Body& body, launch_options how) {
  if (how.on_host) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  if (count == 0) return;   // a launch of no blocks is an error
  constexpr unsigned threads = 128;
  for_each_kernel<<<static_cast<unsigned>((count + threads - 1) / threads), threads, 0, how.stream>>>(count, body);
  check(cudaGetLastError(), "a kernel's launch");
}

/// Zeros, in the GPU's memory or the host's.
template <class T>
T* make(std::size_t count, bool on_host) {
  void* memory = nullptr;
  if (on_host) {
    memory = std::calloc(count, sizeof(T));
  } else {
    check(cudaMalloc(&memory, count * sizeof(T)), "cudaMalloc");
    check(cudaMemset(memory, 0, count * sizeof(T)), "cudaMemset");
  }
  return static_cast<T*>(memory);
}

inline void release(void* memory, bool on_host) {
  if (on_host) std::free(memory);
  else cudaFree(memory);
}

/// Between pageable memory and the GPU's, whichever way. From pageable memory cudaMemcpy may return while the last
/// piece is still under way, and streams like the examples' do not wait for the default one.
template <class T>
void copy_and_wait(T* to, const T* from, std::size_t count, bool on_host) {
  if (on_host) {
    std::memcpy(to, from, count * sizeof(T));
    return;
  }
  check(cudaMemcpy(to, from, count * sizeof(T), cudaMemcpyDefault), "cudaMemcpy");
  check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}
