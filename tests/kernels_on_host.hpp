// Kernels for tests without a GPU: to be included before any .cuh header, which are then compiled for the host.
//
// launch() queues a copy of the body in the stream as a host function of the fake CUDA runtime. A block is one call
// with loops over its threads, in an order that produces the same bits as the GPU's code. Under
// `kernels_run_in_threads`, each thread of a block is a thread of the host instead.
#pragma once

#define MILLRACE_KERNELS_ON_HOST

#include <millrace/device/kernel.cuh>

#include "cuda/fake/fake_cuda.hpp"
#include "kernels_in_threads.hpp"

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

/// Kernels that are launched during its lifetime run in threads.
class kernels_run_in_threads {
 public:
  explicit kernels_run_in_threads(warp_order order) { current() = order; }
  kernels_run_in_threads(const kernels_run_in_threads&) = delete;
  kernels_run_in_threads& operator=(const kernels_run_in_threads&) = delete;
  ~kernels_run_in_threads() { current().reset(); }

  static std::optional<warp_order>& current() {
    static std::optional<warp_order> order;
    return order;
  }
};

/// Has the functions of block_team for a complete block.
template <unsigned Threads>
class block_of_loops {
 public:
  block_of_loops(unsigned block, unsigned blocks) noexcept : block_(block), blocks_(blocks) {}
  unsigned block() const noexcept { return block_; }
  unsigned blocks() const noexcept { return blocks_; }
  block_of_loops part(unsigned first, unsigned blocks) const noexcept { return {block_ - first, blocks}; }

  template <class F>
  void each(const F& f) const {
    for (unsigned t = 0; t < Threads; ++t) f(t);
  }
  template <class F>
  void once(const F& f) const {
    f();
  }
  void add(std::uint64_t& to, std::uint64_t value) const noexcept { to += value; }

  template <class F>
  auto reduce(const F& f) const {
    using part = std::remove_cv_t<decltype(f(0U))>;
    constexpr unsigned lanes = 32;
    part all{};
    for (unsigned w = 0; w < Threads / lanes; ++w) {
      part parts[lanes];
      for (unsigned l = 0; l < lanes; ++l) parts[l] = f(w * lanes + l);
      for (unsigned step = lanes / 2; step > 0; step /= 2)
        for (unsigned l = 0; l < step; ++l) parts[l].merge(parts[l + step]);
      if (w == 0) all = parts[0];
      else all.merge(parts[0]);
    }
    return all;
  }

 private:
  unsigned block_, blocks_;
};

template <class Body>
void run_in_loops(const Body& body, unsigned blocks) {
  for (unsigned b = 0; b < blocks; ++b) body(block_of_loops<Body::threads>(b, blocks));
}

namespace queued_kernels {

template <class Body>
struct launched {
  Body body;   // first, because the fake runtime searches it for addresses
  unsigned blocks;
  std::optional<warp_order> threads;

  static void run(void* self) {
    const auto& work = *static_cast<const launched*>(self);
    if (work.threads) run_in_threads(work.body, work.blocks, *work.threads);
    else run_in_loops(work.body, work.blocks);
  }
};

inline void queue(std::shared_ptr<void> launch, std::size_t bytes, cudaHostFn_t run, millrace::stream_view stream) {
  struct work {
    std::shared_ptr<void> launch;
    cudaHostFn_t run;
    static void run_often(void* self) { static_cast<work*>(self)->run(static_cast<work*>(self)->launch.get()); }
    static void run_once(void* self) {
      const std::unique_ptr<work> ends(static_cast<work*>(self));
      run_often(self);
    }
  };
  // They must outlive their graph, because a graph may run any number of times.
  static std::vector<std::unique_ptr<work>> of_graphs;
  auto w = std::make_unique<work>(work{std::move(launch), run});
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  millrace::detail::check_cuda(cudaStreamIsCapturing(stream, &capture), "cudaStreamIsCapturing");
  const bool repeats = capture != cudaStreamCaptureStatusNone;
  fake_cuda::next_kernel(w->launch.get(), bytes);
  millrace::detail::check_cuda(cudaLaunchHostFunc(stream, repeats ? &work::run_often : &work::run_once, w.get()),
                               "cudaLaunchHostFunc");
  if (repeats) of_graphs.push_back(std::move(w));
  else w.release();
}

}  // namespace queued_kernels

template <class Body>
void millrace::detail::launch(const Body& body, const launch_options& how) {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (how.blocks == 0) return;
  using work = queued_kernels::launched<Body>;
  queued_kernels::queue(std::make_shared<work>(work{body, how.blocks, kernels_run_in_threads::current()}), sizeof(Body),
                        &work::run, how.stream);
}
