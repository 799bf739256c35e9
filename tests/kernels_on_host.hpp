// Kernels for tests without a GPU: to be included before any .cuh header, which are then compiled for the host.
#pragma once

#define MILLRACE_KERNELS_ON_HOST

#include <millrace/device/kernel.cuh>

#include "cuda/fake/fake_cuda.hpp"

#include <utility>
#include <vector>

inline void millrace::detail::queue_on_host(std::shared_ptr<void> launch, std::size_t bytes, cudaHostFn_t run,
                                            stream_view stream) {
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
  check_cuda(cudaStreamIsCapturing(stream, &capture), "cudaStreamIsCapturing");
  const bool repeats = capture != cudaStreamCaptureStatusNone;
  fake_cuda::next_kernel(w->launch.get(), bytes);
  check_cuda(cudaLaunchHostFunc(stream, repeats ? &work::run_often : &work::run_once, w.get()), "cudaLaunchHostFunc");
  if (repeats) of_graphs.push_back(std::move(w));
  else w.release();
}
