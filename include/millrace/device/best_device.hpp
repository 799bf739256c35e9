// The fastest device of this machine: a GPU where this build knows CUDA and there is one, else the host.
//
//   mr::to_device({.device = mr::best_device()})
//
// With several processes on one machine each takes the GPU of its local rank, counted round where there are fewer. The
// rank is what torchrun, Open MPI, MVAPICH2, MPICH's hydra or Slurm put into the environment (launcher.hpp); 0 where
// none did. Kernels go by the thread's current device: make this one current, cudaSetDevice(device.ordinal()), before
// anything else of CUDA; on behalf of a thread that has not chosen, the runtime opens device 0 as well, which takes
// memory there. Errors: io_error where there is a GPU that cannot be used.
#pragma once

#include <millrace/base/launcher.hpp>
#include <millrace/device/host.hpp>
#ifdef MILLRACE_CUDA
#include <millrace/device/cuda.hpp>
#endif

namespace millrace { inline namespace MILLRACE_ABI {

inline device best_device() {
#ifdef MILLRACE_CUDA
  if (const int count = cuda_device_count(); count > 0) return cuda_device(local_rank() % count);
#endif
  return host_device();
}

}}  // namespace millrace
