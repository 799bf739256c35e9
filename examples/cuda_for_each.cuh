// Helpers of the examples' kernels: a launch with one thread for each result, memory, blocking copies.
//
//   struct twice {                                                  // a kernel: its arguments, the work of thread i
//     float* values;
//     __host__ __device__ void operator()(std::size_t i) const { values[i] *= 2; }
//   };
//   for_each(count, twice{values}, {.stream = stream, .on_host = false});      // returns at once
//
// With `on_host` the host runs the same bodies one after the other, in host memory, without CUDA. That is slow, but
// checks their arithmetic without a GPU. Errors of CUDA end the program with a message.
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

/// Returns zeros in memory of the GPU or of the host.
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

/// Copies between pageable memory and that of the GPU, in either direction. From pageable memory cudaMemcpy may return
/// before the last part has arrived, and the examples' streams do not wait for the default stream.
template <class T>
void copy_and_wait(T* to, const T* from, std::size_t count, bool on_host) {
  if (on_host) {
    std::memcpy(to, from, count * sizeof(T));
    return;
  }
  check(cudaMemcpy(to, from, count * sizeof(T), cudaMemcpyDefault), "cudaMemcpy");
  check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}
