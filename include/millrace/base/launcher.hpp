// What the launcher of several processes says in the environment: which one this is, of how many.
//
//   for (const mr::launcher& l : mr::launchers) if (std::getenv(l.rank)) ...
//   int gpu = mr::local_rank() % gpus;
//
// The variables of torchrun, Open MPI, MVAPICH2, MPICH's hydra (Intel MPI's too) and Slurm, by their documentation. The
// innermost comes first: a launcher may have been started by one further down, whose variables are then still there,
// and its own are the ones to believe. Errors: none here; order/world.hpp judges them. Threads: reads the environment,
// which nobody may change meanwhile.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdlib>

namespace millrace { inline namespace MILLRACE_ABI {

/// Names of variables.
struct launcher {
  const char* name;
  const char* rank;
  const char* world_size;
  const char* local_rank;
};

inline constexpr launcher launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"MVAPICH2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
};

/// A number of processes as launchers write it: digits, nothing else, below 2^20. -1: it is something else.
constexpr int launcher_number(const char* text) noexcept {
  int number = text && *text != '\0' ? 0 : -1;
  for (; number >= 0 && *text != '\0'; ++text)
    number = *text >= '0' && *text <= '9' && number < 1 << 20 ? number * 10 + (*text - '0') : -1;
  return number < 1 << 20 ? number : -1;
}

/// Which of the processes on this machine this one is; 0 where no launcher says.
inline int local_rank() noexcept {
  for (const launcher& l : launchers)
    if (const int rank = launcher_number(std::getenv(l.local_rank)); rank >= 0) return rank;
  return 0;
}

}}  // namespace millrace
