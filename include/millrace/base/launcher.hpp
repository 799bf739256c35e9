// Lists the environment variables by which launchers pass the rank and the world size to a process.
//
//   for (const mr::detail::launcher& l : mr::detail::launchers)
//     if (const char* rank = std::getenv(l.rank)) std::printf("%s: rank %s\n", l.name, rank);
//   int gpu = mr::local_rank() % gpus;
//
// The list contains the variables of torchrun, Horovod, Open MPI, MVAPICH2, MPICH's hydra (also Intel MPI), IBM's
// jsrun, Flux, HPE PALS and Slurm. If one launcher starts another launcher, the variables of both are set, but only the
// variables of the inner launcher are correct. Therefore the list begins with the innermost launcher. Errors: none;
// item/world.hpp checks the values. Threads: any thread may call local_rank(), but no thread may change the environment
// during the call. Sources: the documentation of the launchers; for Flux, src/shell/task.c of flux-core; for PALS, its
// public header pals.h and the user guides of Aurora.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdlib>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// A launcher, and the names of its environment variables.
struct launcher {
  const char* name;
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_size;   ///< processes on this machine; null if item/world.hpp computes the number
};

/// The supported launchers, the innermost first.
inline constexpr launcher launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Horovod", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MVAPICH2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE"},
    {"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", nullptr},
    {"HPE PALS", "PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr},
};

/// Parses the value of a variable. If the text is not a decimal number below 2^20, returns -1.
constexpr int launcher_number(const char* text) noexcept {
  int number = text && *text != '\0' ? 0 : -1;
  for (; number >= 0 && *text != '\0'; ++text)
    number = *text >= '0' && *text <= '9' && number < 1 << 20 ? number * 10 + (*text - '0') : -1;
  return number < 1 << 20 ? number : -1;
}

}   // namespace detail

/// Returns the rank of this process among the processes on this machine, or 0 if no launcher has set the rank.
inline int local_rank() noexcept {
  for (const detail::launcher& l : detail::launchers)
    if (const int rank = detail::launcher_number(std::getenv(l.local_rank)); rank >= 0) return rank;
  return 0;
}

}}   // namespace millrace
