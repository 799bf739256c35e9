// Common code of benchmarks on a GPU: its presence, its name, and checks of CUDA calls.
//
//   std::string why;
//   if (!bench::gpu_found(why)) return run.nothing_measured("no GPU: " + why);
//   bench::check_cuda(cudaMalloc(&memory, bytes), "cudaMalloc");      // io_error with CUDA's message
//
// Needs MILLRACE_CUDA: the runtime's C functions, no compiler for device code.
#pragma once

#include <millrace/device/cuda_error.hpp>

#include <string>

namespace bench {

using millrace::detail::check_cuda;

/// Returns whether there is a working GPU; if not, `why` is the reason.
inline bool gpu_found(std::string& why) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return true;
  why = status == cudaSuccess ? "none found" : cudaGetErrorString(status);
  static_cast<void>(cudaGetLastError());   // or a later call would report this error
  return false;
}

inline std::string gpu_name() {
  int device = 0, driver = 0;
  cudaDeviceProp properties{};
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  return std::string(properties.name) + ", driver for CUDA " + std::to_string(driver / 1000) + "." +
         std::to_string(driver % 1000 / 10);
}

}  // namespace bench
