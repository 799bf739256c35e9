// Helpers of the contract suite, which runs the same tests with the fake CUDA runtime and the real one.
//
//   contract::start();                                  // resets the fake; with the real one, skips without a GPU
//   contract::stream s(cudaStreamNonBlocking);
//   contract::stream_block block(s);                            // later work in `s` does not run ...
//   block.unblock();                                     // ... before this
//   contract::read_back(device_memory, 16);             // bytes, as they are once `s` ... is through
#pragma once

#include <cuda_runtime_api.h>
#ifdef MILLRACE_FAKE_CUDA
#include "../fake/fake_cuda.hpp"
#endif

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace contract {

inline void ok(cudaError_t result) { REQUIRE(std::string(cudaGetErrorName(result)) == "cudaSuccess"); }

inline std::shared_ptr<void> reader_of_test;   // see the_reader()

/// With threads that run the device's work, so that a test may block a stream and check that others continue.
inline void start([[maybe_unused]] std::uint64_t seed = 1, [[maybe_unused]] int devices = 1) {
  reader_of_test.reset();
#ifdef MILLRACE_FAKE_CUDA
  fake_cuda::reset({.seed = seed, .devices = devices, .background_threads = 4});
#else
  ok(cudaSetDevice(0));
  cudaGetLastError();   // clears errors of the previous test, for example cudaErrorNotReady
#endif
}

/// Whether there is a second device. If not, the test case is skipped.
inline bool second_device() {
  int count = 0;
  ok(cudaGetDeviceCount(&count));
  if (count < 2) MESSAGE("only one device: tested only with the fake runtime");
  return count >= 2;
}

class stream {
 public:
  explicit stream(unsigned flags = cudaStreamNonBlocking) { ok(cudaStreamCreateWithFlags(&handle_, flags)); }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  ~stream() {
    cudaStreamSynchronize(handle_);
    cudaStreamDestroy(handle_);
  }
  operator cudaStream_t() const noexcept { return handle_; }
  void synchronize() const { ok(cudaStreamSynchronize(handle_)); }

 private:
  cudaStream_t handle_ = nullptr;
};

class event {
 public:
  event() { ok(cudaEventCreateWithFlags(&handle_, cudaEventDisableTiming)); }
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  ~event() { cudaEventDestroy(handle_); }
  operator cudaEvent_t() const noexcept { return handle_; }
  bool reached() const {
    const cudaError_t result = cudaEventQuery(handle_);
    if (result != cudaErrorNotReady) ok(result);
    return result == cudaSuccess;
  }

 private:
  cudaEvent_t handle_ = nullptr;
};

inline void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

struct pinned_free {
  void operator()(void* memory) const { cudaFreeHost(memory); }
};
struct device_free {
  void operator()(void* memory) const { cudaFree(memory); }
};
using pinned_memory = std::unique_ptr<unsigned char[], pinned_free>;
using device_memory = std::unique_ptr<unsigned char[], device_free>;

inline pinned_memory make_pinned(std::size_t bytes, int value = 0) {
  void* memory = nullptr;
  ok(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
  std::memset(memory, value, bytes);
  return pinned_memory(static_cast<unsigned char*>(memory));
}
inline device_memory make_device(std::size_t bytes) {
  void* memory = nullptr;
  ok(cudaMalloc(&memory, bytes));
  return device_memory(static_cast<unsigned char*>(memory));
}

/// A stream and pinned memory for read_back().
struct reader {
  stream copies;
  std::size_t bytes = std::size_t{64} << 10;
  pinned_memory to = make_pinned(bytes);
};
/// The reader of this test, which exists before anything is blocked.
inline reader& the_reader() {
  if (!reader_of_test) reader_of_test = std::make_shared<reader>();
  return *static_cast<reader*>(reader_of_test.get());
}

/// The current content of device memory, independent of other streams.
inline std::vector<unsigned char> read_back(const void* device, std::size_t bytes) {
  const reader& r = the_reader();
  std::vector<unsigned char> result(bytes);
  unsigned char* const to = bytes <= r.bytes ? r.to.get() : result.data();
  ok(cudaMemcpyAsync(to, device, bytes, cudaMemcpyDeviceToHost, r.copies));
  r.copies.synchronize();
  if (to != result.data()) std::memcpy(result.data(), to, bytes);
  return result;
}

/// Work that ends with unblock(). Later work in its stream waits. Nothing may be created or freed meanwhile: a real
/// driver may wait for the blocked work. If a test hangs, the work ends after a time limit and the test fails.
class stream_block {
 public:
  explicit stream_block(cudaStream_t stream) : state_(new state) {
    the_reader();
    resource_calls_ = resource_calls();
    ok(cudaLaunchHostFunc(
        stream,
        [](void* data) {
          auto* const s = static_cast<state*>(data);
          // All calls are slow under compute-sanitizer.
          const std::chrono::seconds limit(std::getenv("MILLRACE_SLOW_TOOLS") ? 600 : 120);
          const auto end = std::chrono::steady_clock::now() + limit;
          while (!s->open && !s->expired) {
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            s->expired = std::chrono::steady_clock::now() >= end;
          }
          s->over = true;
        },
        state_.get()));
  }
  ~stream_block() {
    unblock();
    while (!state_->over) std::this_thread::sleep_for(std::chrono::microseconds(200));
    CHECK_FALSE(state_->expired);
  }
  void unblock() {
    if (!state_->open) CHECK(resource_calls() == resource_calls_);
    state_->open = true;
  }
  bool is_over() const { return state_->over; }

 private:
  struct state {
    std::atomic<bool> open{false}, expired{false}, over{false};
  };

  static std::uint64_t resource_calls() {
    std::uint64_t all = 0;
#ifdef MILLRACE_FAKE_CUDA
    for (const char* name : {"cudaStreamCreateWithFlags", "cudaEventCreateWithFlags", "cudaMalloc", "cudaFree",
                             "cudaHostAlloc", "cudaFreeHost", "cudaHostRegister", "cudaHostUnregister"})
      all += fake_cuda::calls(name);
#endif
    return all;
  }

  std::unique_ptr<state> state_;
  std::uint64_t resource_calls_ = 0;
};

inline bool all_are(const unsigned char* memory, std::size_t bytes, int value) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (memory[i] != value) return false;
  return true;
}
inline bool all_are(const std::vector<unsigned char>& memory, int value) {
  return all_are(memory.data(), memory.size(), value);
}

}  // namespace contract
