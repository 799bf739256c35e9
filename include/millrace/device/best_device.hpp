// Selects the fastest device of this machine: a GPU if this build supports CUDA and the machine has one, otherwise the
// host.
//
//   mr::device device = mr::best_device();
//   auto flow = mr::from(examples) | mr::batch<&example::features>({.size = 256})
//             | mr::to_device({.device = device});
//
// If several processes run on one machine, each process uses GPU (local rank) % (number of GPUs). The local rank is
// read from the environment variables of the launcher, such as torchrun, Open MPI or Slurm (base/machine.hpp). Without
// these variables the local rank is 0. Millrace opens no other GPU. Your own kernels run on the current device of your
// thread: call cudaSetDevice(device.ordinal()) before your own CUDA calls, which would otherwise open GPU 0 and use its
// memory.
// Errors: io_error if a GPU exists and cannot be used.
#pragma once

#include <millrace/base/machine.hpp>
#include <millrace/device/host.hpp>
#ifdef MILLRACE_CUDA
#include <millrace/device/cuda.hpp>
#endif

namespace millrace { inline namespace MILLRACE_ABI {

/// Returns the GPU of this process's local rank, or the host device on a machine without a GPU or a driver.
/// Throws io_error if the driver fails or the GPU cannot be used.
inline device best_device() {
#ifdef MILLRACE_CUDA
  if (const int count = detail::count_gpus(); count > 0) return cuda_device(local_rank() % count);
#endif
  return host_device();
}

}}   // namespace millrace
