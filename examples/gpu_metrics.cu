// See gpu_metrics.hpp.
#include "gpu_metrics.hpp"

#include <millrace/train/metrics.cuh>

std::shared_ptr<millrace::device_sums> make_gpu_sums(int device) {
  millrace::detail::check_cuda(cudaSetDevice(device), "cudaSetDevice");
  return millrace::cuda_metric_sums({.device = device});
}
