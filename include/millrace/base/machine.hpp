// Determines how many cores (affinity mask, cgroup quota) and how much memory (cgroup limit) this process may use.
//
//   unsigned workers = mr::usable_cores();          // never more than the scheduler grants
//   std::size_t all  = mr::detail::usable_memory_bytes();   // physical memory or the cgroup's limit, whichever is less
//
//   auto mine = mr::detail::share_of_machine(8);     // the cores and bytes of each of eight processes
//
// oneTBB considers only the affinity mask. In a container with a small quota, oneTBB would start a thread for each core
// of the machine, and the threads would be throttled. Masks, quotas and limits are supported on Linux only; on other
// systems the functions return the numbers of the hardware.
// Errors: none. Threads: any thread; each call reads the values again.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

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

namespace detail {

/// A launcher, and the names of its environment variables.
struct launcher {
  const char* name;
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_size;   ///< variable with the number of processes on this machine; if null, the number is computed
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
constexpr int launcher_variable_number(const char* text) noexcept {
  int number = text && *text != '\0' ? 0 : -1;
  for (; number >= 0 && *text != '\0'; ++text)
    number = *text >= '0' && *text <= '9' && number < 1 << 20 ? number * 10 + (*text - '0') : -1;
  return number < 1 << 20 ? number : -1;
}

}   // namespace detail

/// Returns the rank of this process among the processes on this machine, or 0 if no launcher has set the rank.
inline int local_rank() noexcept {
  for (const detail::launcher& l : detail::launchers)
    if (const int rank = detail::launcher_variable_number(std::getenv(l.local_rank)); rank >= 0) return rank;
  return 0;
}

namespace detail {

/// Returns the first line of a small file; empty if it cannot be read.
std::string first_line(const std::string& path);

/// Returns the quota in cores from the text of cgroup v2's cpu.max ("200000 100000" or "max 100000"); 0 without a
/// quota.
double cores_of_cpu_max(const std::string& text);

/// Returns the cgroup's path in a line of /proc/self/cgroup. Returns "" for the root cgroup, and for a line of another
/// controller. Examples: "0::/user.slice/x" (cgroup v2, without a controller), "4:cpu,cpuacct:/x" (cgroup v1).
std::string cgroup_path_in(const std::string& line, const std::string& controller);

/// Returns the folders from a process's cgroup up to the root, because limits apply at every level. If `controller` is
/// empty, returns folders of cgroup v2, otherwise of cgroup v1. `process` is a process number, or "self".
std::vector<std::string> cgroup_folders(const std::string& controller = "", const std::string& process = "self");

void name_this_thread([[maybe_unused]] const char* name) noexcept;

}   // namespace detail

/// Returns the number of cores that this process may use, at least 1. This is the minimum of two numbers: the cores in
/// the affinity mask, and the cgroup quota rounded up.
unsigned usable_cores();

namespace detail {

/// Returns the number of bytes of memory that this process may use: physical memory or the cgroup's limit, whichever is
/// less.
std::size_t usable_memory_bytes();

/// The cores and limits of a process and of its parent (the process that started it).
struct machine_view {
  unsigned machine_cores = 1;       ///< cores of the machine
  unsigned own_cores = 1;           ///< cores in the affinity mask
  unsigned parent_cores = 0;        ///< cores in the parent's affinity mask; 0 if unknown
  bool parent_starts_all = false;   ///< whether the parent started all ranks on this machine, as torchrun does
  double quota_cores = 0;           ///< quota of the cgroup; 0 without a quota
  bool quota_is_shared = true;      ///< whether the same quota applies to the parent
  std::size_t memory_bytes = 0;
  bool memory_is_shared = true;   ///< whether the same limit applies to the parent, or no limit is set

  /// Returns the values for this process.
  static machine_view now(bool parent_starts_all);
};

/// The part of a machine that one of several processes uses.
struct machine_part_of_rank {
  unsigned cores = 1;
  std::size_t memory_bytes = 0;
};

/// Returns the part of one process if `processes` processes run on the machine. A shared resource is divided by
/// `processes`. A resource that is not shared belongs completely to this process. Physical memory is shared. The limits
/// of a cgroup are shared if the cgroup contains the parent. An affinity mask is not shared if it is smaller than the
/// parent's mask, because the launcher then assigned separate cores to each process. Any other mask is shared in three
/// cases: the mask contains all cores, the parent started all processes, or all masks together have more cores than the
/// machine.
machine_part_of_rank divided(const machine_view& view, std::size_t processes) noexcept;

/// Returns the share of this process if `processes` processes run on this machine.
machine_part_of_rank share_of_machine(std::size_t processes);

}   // namespace detail

}}   // namespace millrace

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Opens a text file with the C library. The file is closed at the end of the scope, even if an exception is thrown.
//
//   if (const auto file = mr::detail::open_text("/proc/self/cgroup"))
//     while (std::fgets(line, sizeof line, file.get())) use(line);
//
// Errors: none; the result is null if the file cannot be opened. Threads: not synchronized.

/// Closes a file.
struct text_file_closer {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

/// Opens a file for reading. Returns null if the file cannot be opened.
inline std::unique_ptr<std::FILE, text_file_closer> open_text(const char* path) noexcept {
  return std::unique_ptr<std::FILE, text_file_closer>(std::fopen(path, "re"));
}

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/base/impl/machine.inl>
#endif
