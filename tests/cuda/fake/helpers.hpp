// Helpers of the fake's tests: short ways to create objects, and to run each case with every order of operations.
//
//   for_each_world([](fake_cuda::order when) {
//     pinned<int> source(100);  on_device<int> target(100);  a_stream s;
//     ok(cudaMemcpyAsync(target, source, target.bytes, cudaMemcpyHostToDevice, s));
//   });
#pragma once

#include "fake_cuda.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <initializer_list>
#include <vector>

namespace fake_cuda_test {

inline constexpr std::size_t page = 4096;

inline void ok(cudaError_t error) { CHECK_MESSAGE(error == cudaSuccess, cudaGetErrorName(error)); }

/// Late, early and shuffled, inside the calls and on two background threads; shuffled with several seeds.
template <typename Body>
void for_each_world(const Body& body) {
  using fake_cuda::order;
  for (const int threads : {0, 2}) {
    for (const order when : {order::late, order::early, order::shuffled}) {
      for (std::uint64_t seed = 1; seed <= (when == order::shuffled ? 10 : 1); ++seed) {
        CAPTURE(threads);
        CAPTURE(static_cast<int>(when));
        CAPTURE(seed);
        fake_cuda::reset({.seed = seed, .when = when, .background_threads = threads});
        body(when);
        CHECK(fake_cuda::live() == fake_cuda::handles{});
        CHECK(fake_cuda::violations() == std::vector<std::string>{});
      }
    }
  }
  fake_cuda::reset();
}

template <typename T>
struct pinned {
  T* data = nullptr;
  std::size_t bytes;
  explicit pinned(std::size_t count) : bytes(count * sizeof(T)) {
    void* memory = nullptr;
    ok(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
    data = static_cast<T*>(memory);
  }
  ~pinned() { cudaFreeHost(data); }
  pinned(const pinned&) = delete;
  pinned& operator=(const pinned&) = delete;
  operator T*() const { return data; }
};

template <typename T>
struct on_device {
  T* data = nullptr;
  std::size_t bytes;
  explicit on_device(std::size_t count) : bytes(count * sizeof(T)) {
    void* memory = nullptr;
    ok(cudaMalloc(&memory, bytes));
    data = static_cast<T*>(memory);
  }
  ~on_device() { cudaFree(data); }
  on_device(const on_device&) = delete;
  on_device& operator=(const on_device&) = delete;
  operator T*() const { return data; }
  std::vector<T> values() const {
    const T* first = fake_cuda::peek(data);
    return {first, first + bytes / sizeof(T)};
  }
};

struct a_stream {
  cudaStream_t handle = nullptr;
  explicit a_stream(unsigned int flags = cudaStreamNonBlocking) { ok(cudaStreamCreateWithFlags(&handle, flags)); }
  ~a_stream() { cudaStreamDestroy(handle); }
  a_stream(const a_stream&) = delete;
  a_stream& operator=(const a_stream&) = delete;
  operator cudaStream_t() const { return handle; }
};

struct an_event {
  cudaEvent_t handle = nullptr;
  explicit an_event(unsigned int flags = cudaEventDisableTiming) { ok(cudaEventCreateWithFlags(&handle, flags)); }
  ~an_event() { cudaEventDestroy(handle); }
  an_event(const an_event&) = delete;
  an_event& operator=(const an_event&) = delete;
  operator cudaEvent_t() const { return handle; }
};

/// A kernel for cudaLaunchHostFunc: appends `number` to `log`.
struct note {
  std::vector<int>* log;
  int number;
  static void write(void* self) {
    const auto* n = static_cast<const note*>(self);
    n->log->push_back(n->number);
  }
};

}  // namespace fake_cuda_test
