// Allows the same kernel source to be compiled by nvcc for the GPU, and by any compiler for tests without a GPU.
//
//   struct doubled {                                         // a body: trivially copyable, pointers and numbers
//     static constexpr unsigned threads = 256;
//     float* values;  unsigned count;
//     void operator()(const block_team<threads>& team) const {      // marked __host__ __device__
//       team.each([&](unsigned t) { if (const auto i = team.block() * threads + t; i < count) values[i] *= 2; });
//     }
//   };
//   launch(doubled{v, n}, {.blocks = (n + 255) / 256, .stream = s});
//
// A body runs once for each block. each() calls a function for every thread. reduce() merges the results of all
// threads. once() runs on one thread. Between these calls, control flow must be the same for all threads of the block.
// In the host build, a block is one call, and these three functions are loops in an order that produces the same bits.
// There launch() queues a copy of the body in the stream as a host function. The host build is for tests with a
// substitute for the CUDA runtime, whose device memory the host can read. To use the host build, a file defines
// MILLRACE_KERNELS_ON_HOST and the function queue_on_host().
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
#include <memory>
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

/// Adds `value` to a number that other blocks may update concurrently.
MILLRACE_BOTH_SIDES inline void add_shared(std::uint64_t& to, std::uint64_t value) noexcept {
#ifdef __CUDA_ARCH__
  atomicAdd(reinterpret_cast<unsigned long long*>(&to), static_cast<unsigned long long>(value));
#else
  to += value;
#endif
}

/// The threads of one block, for use in a body.
template <unsigned Threads>
class block_team {
 public:
  static constexpr unsigned lanes = 32, warps = Threads / lanes;
  static_assert(Threads % lanes == 0 && warps >= 1 && warps <= 32);

  MILLRACE_BOTH_SIDES block_team(unsigned block, unsigned blocks) noexcept : block_(block), blocks_(blocks) {}
  MILLRACE_BOTH_SIDES unsigned block() const noexcept { return block_; }
  MILLRACE_BOTH_SIDES unsigned blocks() const noexcept { return blocks_; }

  /// Calls f(thread) for every thread.
  template <class F>
  MILLRACE_BOTH_SIDES void each(const F& f) const {
#ifdef __CUDA_ARCH__
    f(threadIdx.x);
#else
    for (unsigned t = 0; t < Threads; ++t) f(t);
#endif
  }

  /// Calls f() on thread 0. Only this thread has the result of reduce().
  template <class F>
  MILLRACE_BOTH_SIDES void once(const F& f) const {
#ifdef __CUDA_ARCH__
    if (threadIdx.x != 0) return;
#endif
    f();
  }

  /// Merges the results of f(thread) in a fixed order by part.merge(other). The merged result is valid only inside
  /// once().
  template <class F>
  MILLRACE_BOTH_SIDES auto reduce(const F& f) const {
    using part = std::remove_cv_t<decltype(f(0U))>;
    static_assert(std::is_trivially_copyable_v<part> && sizeof(part) % sizeof(unsigned) == 0);
#ifdef __CUDA_ARCH__
    part mine = f(threadIdx.x);
    for (unsigned step = lanes / 2; step > 0; step /= 2) mine.merge(from_lane_above(mine, step));
    if constexpr (warps > 1) {
      // An array of bytes, because a shared variable cannot have an initializer. The first barrier separates the
      // previous reduction from this one.
      __shared__ alignas(16) unsigned char memory[warps * sizeof(part)];
      auto* const of_warps = reinterpret_cast<part*>(memory);
      __syncthreads();
      if (threadIdx.x % lanes == 0) of_warps[threadIdx.x / lanes] = mine;
      __syncthreads();
      if (threadIdx.x == 0)
        for (unsigned w = 1; w < warps; ++w) mine.merge(of_warps[w]);
    }
    return mine;
#else
    part all{};
    for (unsigned w = 0; w < warps; ++w) {
      part parts[lanes];
      for (unsigned l = 0; l < lanes; ++l) parts[l] = f(w * lanes + l);
      for (unsigned step = lanes / 2; step > 0; step /= 2)
        for (unsigned l = 0; l < step; ++l) parts[l].merge(parts[l + step]);
      if (w == 0) all = parts[0];
      else all.merge(parts[0]);
    }
    return all;
#endif
  }

 private:
#ifdef __CUDACC__
  template <class Part>
  __device__ static Part from_lane_above(const Part& mine, unsigned step) noexcept {
    struct words {
      unsigned of[sizeof(Part) / sizeof(unsigned)];
    };
    auto moved = __builtin_bit_cast(words, mine);
    for (unsigned& word : moved.of) word = __shfl_down_sync(0xffffffffU, word, step);
    return __builtin_bit_cast(Part, moved);
  }
#endif

  unsigned block_, blocks_;
};

/// Throws setup_error if the view is in host memory or on another GPU than the current one; `header` has the version
/// for the host.
template <class View>
void check_on_device(const View& view, const char* header) {
  const std::string name = "the column " + std::string(view.name);
  if (view.memory != memory_kind::device)
    throw setup_error(name + " is in host memory, which the kernel cannot read",
                      "Use the overload in " + std::string(header) +
                          ", which has no stream parameter, or to_device with a GPU");
  check_gpu(view.data, name, current_gpu());
}

/// The grid and the stream of a launch.
struct launch_options {
  unsigned blocks = 1;
  stream_view stream{};
};

#ifdef __CUDACC__

// Without the annotation, a kernel copies parameters that it indexes. Architectures before sm_70 reject it, and they
// are the default of nvcc 12.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
#define MILLRACE_GRID_CONSTANT __grid_constant__
#else
#define MILLRACE_GRID_CONSTANT
#endif
template <class Body>
__global__ void __launch_bounds__(Body::threads) run_body(const MILLRACE_GRID_CONSTANT Body body) {
  body(block_team<Body::threads>(blockIdx.x, gridDim.x));
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

/// A launch as a host function: run(this launch) executes the body for each block.
template <class Body>
struct host_launch {
  Body body;
  unsigned blocks;

  static void run(void* self) {
    const auto& work = *static_cast<const host_launch*>(self);
    for (unsigned b = 0; b < work.blocks; ++b) work.body(block_team<Body::threads>(b, work.blocks));
  }
};

/// Queues run(launch.get()) in the stream. `bytes` is the size of the launch, which begins with the body.
inline void queue_on_host(std::shared_ptr<void> launch, std::size_t bytes, cudaHostFn_t run, stream_view stream);

template <class Body>
void launch(const Body& body, const launch_options& how) {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (how.blocks == 0) return;
  using queued = host_launch<Body>;
  queue_on_host(std::make_shared<queued>(queued{body, how.blocks}), sizeof(queued), &queued::run, how.stream);
}

#endif

}}}  // namespace millrace::detail
