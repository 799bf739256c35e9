// See gpu_metrics.hpp.
#include "gpu_metrics.hpp"

#include <millrace/base/error.hpp>
#include <millrace/train/metrics.cuh>

#include <string>

std::shared_ptr<millrace::device_sums> make_gpu_sums(int device) {
  if (const cudaError_t failed = cudaSetDevice(device); failed != cudaSuccess)
    throw millrace::io_error("the GPU cannot be used: " + std::string(cudaGetErrorString(failed)), "Run nvidia-smi");
  return millrace::cuda_metric_sums({.device = device});
}
