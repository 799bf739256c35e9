// Allows the same kernel source to be compiled by nvcc for the GPU, and by any compiler for tests without a GPU.
//
//   struct doubled {                                         // a body: trivially copyable, pointers and numbers
//     static constexpr unsigned threads = 256;
//     float* values;  unsigned count;
//     void operator()(const auto& team) const {                // a kernel_block_team; marked __host__ __device__
//       team.each([&](unsigned t) { if (const auto i = team.block() * threads + t; i < count) values[i] *= 2; });
//     }
//   };
//   launch(doubled{v, n}, {.blocks = (n + 255) / 256, .stream = s});
//
// Every thread of a block runs the body. each() passes the thread's number. reduce() merges the results of all threads.
// once() runs on one thread. Control flow must be the same for all threads of the block, except inside these functions.
// Tests without a GPU compile the bodies for the host (tests/kernels_on_host.hpp).
// Errors: io_error if a launch fails. Threads: any.
#pragma once

#if !defined(__CUDACC__) && !defined(MILLRACE_KERNELS_ON_HOST)
#error "millrace: .cuh headers contain kernels: include them in a .cu file, which nvcc compiles"
#endif

#include <millrace/device/cuda_error.hpp>
#include <millrace/device/stream.hpp>
#include <millrace/item/tensor/tensor_view.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Values that one instruction loads or stores. The address is a multiple of the total size.
template <class T, std::size_t N>
struct alignas(sizeof(T) * N) pack {
  T values[N];
};

template <std::size_t N, class T>
MILLRACE_BOTH_SIDES pack<T, N> load_pack(const T* from) noexcept {
  return *reinterpret_cast<const pack<T, N>*>(from);
}
template <std::size_t N, class T>
MILLRACE_BOTH_SIDES void store_pack(T* to, const pack<T, N>& values) noexcept {
  *reinterpret_cast<pack<T, N>*>(to) = values;
}

/// Returns whether `address` is a multiple of `bytes`.
MILLRACE_BOTH_SIDES inline bool is_aligned(const void* address, std::size_t bytes) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

#ifdef __CUDACC__
/// The operations of a GPU's thread. The parts for the host are never called.
struct gpu_thread {
#ifdef __CUDA_ARCH__
  __device__ unsigned index() const noexcept { return threadIdx.x; }
  /// Waits for all threads of the block.
  __device__ void synchronize() const noexcept { __syncthreads(); }
  /// Returns the word of the lane whose number in the warp is higher by `step`. All lanes of the warp must call it.
  __device__ unsigned from_lane_above(unsigned word, unsigned step) const noexcept {
    return __shfl_down_sync(0xffffffffU, word, step);
  }
  /// Returns memory that all threads of the block share. Calls with the same size return the same memory.
  template <std::size_t Bytes>
  __device__ unsigned char* shared_memory() const noexcept {
    __shared__ alignas(16) unsigned char memory[Bytes];   // bytes, because a shared variable cannot have an initializer
    return memory;
  }
  /// Adds to a number that other blocks may update concurrently.
  __device__ void add(std::uint64_t& to, std::uint64_t value) const noexcept {
    atomicAdd(reinterpret_cast<unsigned long long*>(&to), static_cast<unsigned long long>(value));
  }
#else
  unsigned index() const noexcept;
  void synchronize() const noexcept;
  unsigned from_lane_above(unsigned word, unsigned step) const noexcept;
  template <std::size_t Bytes>
  unsigned char* shared_memory() const noexcept;
  void add(std::uint64_t& to, std::uint64_t value) const noexcept;
#endif
};
#endif

/// One thread of a block of `Threads` threads, for use in a body.
template <unsigned Threads, class Thread>
class kernel_block_team {
 public:
  static constexpr unsigned lanes = 32, warps = Threads / lanes;
  static_assert(Threads % lanes == 0 && warps >= 1 && warps <= 32);

  MILLRACE_BOTH_SIDES kernel_block_team(unsigned block, unsigned blocks, const Thread& thread) noexcept
      : block_(block), blocks_(blocks), thread_(thread) {}
  MILLRACE_BOTH_SIDES unsigned block() const noexcept { return block_; }
  MILLRACE_BOTH_SIDES unsigned blocks() const noexcept { return blocks_; }
  /// Returns this block as a block of a part of the grid: `blocks` blocks, beginning with `first`.
  MILLRACE_BOTH_SIDES kernel_block_team part(unsigned first, unsigned blocks) const noexcept {
    return {block_ - first, blocks, thread_};
  }

  /// Calls f(thread) for every thread.
  template <class F>
  MILLRACE_BOTH_SIDES void each(const F& f) const {
    f(thread_.index());
  }

  /// Calls f() on thread 0. Only this thread has the result of reduce().
  template <class F>
  MILLRACE_BOTH_SIDES void once(const F& f) const {
    if (thread_.index() == 0) f();
  }

  /// Adds `value` to a number that other blocks may update concurrently.
  MILLRACE_BOTH_SIDES void add(std::uint64_t& to, std::uint64_t value) const { thread_.add(to, value); }

  /// Merges the results of f(thread) in a fixed order by part.merge(other). The merged result is valid only inside
  /// once().
  template <class F>
  MILLRACE_BOTH_SIDES auto reduce(const F& f) const {
    using part = std::remove_cv_t<decltype(f(0U))>;
    static_assert(std::is_trivially_copyable_v<part> && sizeof(part) % sizeof(unsigned) == 0);
    const unsigned thread = thread_.index();
    part mine = f(thread);
    for (unsigned step = lanes / 2; step > 0; step /= 2) mine.merge(from_lane_above(mine, step));
    if constexpr (warps > 1) {
      auto* const of_warps = reinterpret_cast<part*>(thread_.template shared_memory<warps * sizeof(part)>());
      thread_.synchronize();   // separates the previous reduction from this one
      if (thread % lanes == 0) of_warps[thread / lanes] = mine;
      thread_.synchronize();
      if (thread == 0)
        for (unsigned w = 1; w < warps; ++w) mine.merge(of_warps[w]);
    }
    return mine;
  }

 private:
  template <class Part>
  MILLRACE_BOTH_SIDES Part from_lane_above(const Part& mine, unsigned step) const {
    struct words {
      unsigned of[sizeof(Part) / sizeof(unsigned)];
    };
    auto moved = __builtin_bit_cast(words, mine);
    for (unsigned& word : moved.of) word = thread_.from_lane_above(word, step);
    return __builtin_bit_cast(Part, moved);
  }

  unsigned block_, blocks_;
  Thread thread_;
};

/// Throws setup_error if the view is in host memory or on another GPU than the current one; `header` has the version
/// for the host.
template <class View>
void check_on_device(const View& view, const char* header) {
  const std::string name = "the column " + std::string(view.name);
  if (view.memory != memory_kind::device)
    throw setup_error(
        name + " is in host memory, which the kernel cannot read",
        "Use the overload in " + std::string(header) + ", which has no stream parameter, or to_device with a GPU");
  check_gpu(view.data, name, current_gpu());
}

/// The grid and the stream of a launch.
struct launch_options {
  unsigned blocks = 1;
  stream_view stream{};
};

#ifdef __CUDACC__

// Without the annotation, a kernel copies parameters that it indexes. Architectures before sm_70, the default of nvcc
// 12, reject the annotation.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
#define MILLRACE_GRID_CONSTANT __grid_constant__
#else
#define MILLRACE_GRID_CONSTANT
#endif
template <class Body>
__global__ void __launch_bounds__(Body::threads) run_body(const MILLRACE_GRID_CONSTANT Body body) {
  body(kernel_block_team<Body::threads, gpu_thread>(blockIdx.x, gridDim.x, {}));
}
#undef MILLRACE_GRID_CONSTANT

/// Queues the kernel. Checks the result of the launch call itself, because the thread's last error may originate from
/// other code.
/// Throws io_error if the launch fails.
template <class Body>
void launch(const Body& body, const launch_options& how) {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (how.blocks == 0) return;
  Body copy = body;
  void* arguments[] = {&copy};
  check_cuda(cudaLaunchKernel(reinterpret_cast<const void*>(&run_body<Body>), dim3(how.blocks), dim3(Body::threads),
                              arguments, 0, how.stream),
             "cudaLaunchKernel");
}

#else

/// Queues the body in the stream. Each file that defines MILLRACE_KERNELS_ON_HOST also defines this function.
template <class Body>
void launch(const Body& body, const launch_options& how);

#endif

}}}   // namespace millrace::detail
