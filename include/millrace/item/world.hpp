// The rank of this process and the number of processes, in data-parallel training.
//
//   mr::world explicit_world{.rank = 1, .size = 4};      // from MPI_Comm_rank() and the like
//   mr::world mine = mr::world_from_launcher();          // or from the environment: mpirun, srun, torchrun
//   mine.describe();                                     // "rank 1 of 4 (Open MPI, local rank 1 of 2)"
//   mr::world alone = mr::single_process;                // one process, even if a launcher started others
//
// world_from_launcher() reads the environment variables that launchers set. Without these variables, it returns rank 0
// of 1. If several launchers have set variables, it uses those of the launcher that started this process directly:
// - torchrun, if TORCHELASTIC_RUN_ID is set;
// - otherwise MPI, even inside a job of Flux, HPE PALS, jsrun or Slurm.
//
// It is an error if the variables of two MPI launchers contradict each other. Horovod counts as an MPI launcher. RANK
// and WORLD_SIZE without TORCHELASTIC_RUN_ID must not contradict the launcher whose variables are used. A rank without
// a world size is an error, too. For example, PMIx and ALPS do not set the size. Only PMIX_RANK=0 is allowed without a
// size, because MPI_Init() sets it in a program that is started without mpirun. The variables of Slurm are used only
// inside a step of srun. A batch script and the shell of salloc are single processes, although they have the variables
// of the complete job (SLURM_PROCID=0, SLURM_NTASKS=64).
// Errors: throws setup_error that names the variable or both launchers. Causes: the rank or the world size is missing,
// a value is not a number, a rank is not less than the world size, or two launchers contradict each other.
// Threads: the functions read the environment; no thread may change it during a call.
// Source: the documentation named in base/machine.hpp, and the documentation of Slurm (output environment variables of
// srun).
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/machine.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI {

/// The rank of this process among `size` processes.
struct world {
  std::size_t rank = 0;
  std::size_t size = 1;
  std::size_t local_rank = 0;   ///< rank among the processes on this machine; 0 if the launcher does not set it
  std::size_t local_size = 0;   ///< number of the run's processes on this machine; 0 if the launcher does not set it
  const char* launcher = "";    ///< name of the launcher, or empty

  /// Returns "rank 1 of 4", followed by the launcher and the local rank if there is a launcher.
  std::string describe() const;
  friend bool operator==(const world& a, const world& b) noexcept {
    return a.rank == b.rank && a.size == b.size && a.local_rank == b.local_rank && a.local_size == b.local_size;
  }
};

/// Rank 0 of 1: this process alone delivers all samples, even if a launcher started several processes.
inline constexpr world single_process{};

/// Returns the world that the launcher of this process put into the environment; rank 0 of 1 without a launcher.
/// Throws setup_error if the variables are incomplete, invalid or contradictory.
world world_from_launcher();

namespace detail {

/// Throws the setup_error for a session without a world. The message contains `cause`, and the hint lists the possible
/// values of `.world`.
[[noreturn]] void throw_world_unset(const std::string& cause);

/// Returns the number at index `node` of Slurm's list of tasks per node, such as "2(x3),1"; 0 if the list is too short.
std::size_t launcher_tasks_of_node(std::string_view list, std::size_t node) noexcept;

/// Reads the variables of all launchers. `Getenv` is getenv, or a replacement in a test.
template <class Getenv>
class launcher_reader {
 public:
  explicit launcher_reader(const Getenv& getenv) : getenv_(getenv) {}

  MILLRACE_RARE world read() const {
    const std::optional<world> plain = read_one(launcher_named("torchrun"));
    if (plain && set("TORCHELASTIC_RUN_ID")) return *plain;
    const std::optional<world> step = read_job();
    std::optional<world> result;
    for (const char* name : {"Horovod", "Open MPI", "MVAPICH2", "MPICH"}) {
      if (std::string_view(name) == "MPICH" && !set("PMI_RANK") && set("PALS_RANKID")) continue;
      const std::optional<world> next = read_one(launcher_named(name));
      // Slurm also sets the variables of MPICH. They contain the same rank and size as the variables of Slurm.
      const bool of_job = next && step && std::string_view(name) == "MPICH" && agree(*next, *step);
      if (!next || of_job) continue;
      if (result && !agree(*result, *next)) disagree(*result, *next);
      if (!result) result = next;
    }
    if (!result) result = step;
    // Much other software sets RANK and WORLD_SIZE, and leaves them set.
    if (plain && result && !agree(*plain, *result)) disagree(*plain, *result);
    // MPI_Init() of a program that is started without mpirun sets PMIX_RANK=0.
    const bool is_single = set("PMIX_RANK") && std::string_view(getenv_("PMIX_RANK")) == "0";
    if (!result && !plain)
      for (const char* rank : {"PALS_RANKID", "PMIX_RANK", "ALPS_APP_PE"})
        if (set(rank) && !(is_single && std::string_view(rank) == "PMIX_RANK"))
          throw setup_error(std::string(rank) + "=" + printable(getenv_(rank)) +
                                " means that this is one of several processes, but the number of processes is not set",
                            "Set .world from MPI_Comm_rank() and MPI_Comm_size()");
    return result.value_or(plain.value_or(world{}));
  }

  /// Returns single_process. Throws setup_error if there are more processes, or if read() throws.
  MILLRACE_RARE world read_single() const {
    std::string cause;
    try {
      const world mine = read();
      if (mine.size == 1) return single_process;
      cause = ": got " + mine.describe() + " from the environment, expected one process";
    } catch (const setup_error& e) {
      cause = ", and the environment does not contain a valid rank: " + e.message();
    }
    throw_world_unset(cause);
  }

 private:
  /// Reads the variables of Flux, HPE PALS, jsrun or Slurm. Launchers that may run inside another launcher are tried
  /// first.
  MILLRACE_RARE std::optional<world> read_job() const {
    if (auto flux = read_one(launcher_named("Flux"))) {
      const std::size_t nodes = set("FLUX_JOB_NNODES") ? number("FLUX_JOB_NNODES") : 0;
      if (nodes > 0) flux->local_size = (flux->size + nodes - 1) / nodes;
      return flux;
    }
    if (set("PALS_RANKID")) {
      launcher l = launcher_named("HPE PALS");
      for (const char* size : {"PALS_SIZE", "PALS_NRANKS"})
        if (set(size)) l.world_size = size;
      if (!set(l.local_size)) l.local_size = "PMI_LOCAL_SIZE";
      if (set(l.world_size)) return read_one(l);
    }
    if (auto jsrun = read_one(launcher_named("jsrun"))) return jsrun;
    if (!inside_srun_step()) return std::nullopt;
    auto step = read_one(slurm_step());
    if (!step) return step;
    const std::size_t node = set("SLURM_NODEID") ? number("SLURM_NODEID") : 0;
    for (const char* list : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"})
      if (step->local_size == 0 && set(list)) step->local_size = launcher_tasks_of_node(getenv_(list), node);
    return with_local_size(*step);
  }

  /// Returns `w`. If the local_size from the launcher is impossible, the result has the local_size 0.
  static world with_local_size(world w) noexcept {
    if (w.local_size > w.size || w.local_size <= w.local_rank) w.local_size = 0;
    return w;
  }

  static bool agree(const world& a, const world& b) noexcept { return a.rank == b.rank && a.size == b.size; }

  MILLRACE_RARE static launcher launcher_named(std::string_view name) {
    for (const launcher& l : launchers)
      if (name == l.name) return l;
    return {};
  }

  bool set(const char* variable) const {
    const char* const text = getenv_(variable);
    return text && *text != '\0';
  }

  std::size_t number(const char* variable) const {
    const int value = launcher_variable_number(getenv_(variable));
    if (value < 0)
      throw setup_error(std::string(variable) + "=" + printable(getenv_(variable)) + " is not a rank or process count",
                        hint());
    return static_cast<std::size_t>(value);
  }

  MILLRACE_RARE std::optional<world> read_one(const launcher& l) const {
    if (!set(l.rank) && !set(l.world_size)) return std::nullopt;
    const char* const missing = !set(l.rank) ? l.rank : !set(l.world_size) ? l.world_size : nullptr;
    if (missing)
      throw setup_error(std::string(missing == l.rank ? l.world_size : l.rank) + " (" + l.name + ") is set, but " +
                            missing + " is not",
                        hint());
    world r{.rank = number(l.rank), .size = number(l.world_size), .local_rank = 0, .launcher = l.name};
    check_below(l.rank, l.world_size);
    if (set(l.local_rank)) {
      r.local_rank = number(l.local_rank);
      check_below(l.local_rank, l.world_size);
    }
    if (l.local_size && set(l.local_size)) r.local_size = number(l.local_size);
    return with_local_size(r);
  }

  MILLRACE_RARE void check_below(const char* rank, const char* world_size) const {
    if (number(rank) >= number(world_size))
      throw setup_error(
          std::string(rank) + "=" + getenv_(rank) + " is not less than " + world_size + "=" + getenv_(world_size),
          hint());
  }

  MILLRACE_RARE bool inside_srun_step() const {
    const char* variable = set("SLURM_STEP_ID") ? "SLURM_STEP_ID" : "SLURM_STEPID";
    if (!set(variable)) return false;
    // Step numbers from 4294967280 on belong to batch scripts and interactive shells.
    const std::string_view text = getenv_(variable);
    return text.size() < 10 || (text.size() == 10 && text < "4294967280");
  }

  /// Returns the names of Slurm's variables. Prefers the task count of the step to the task count of the job, because
  /// the counts may differ.
  MILLRACE_RARE launcher slurm_step() const {
    launcher l = launcher_named("Slurm");
    if (set("SLURM_STEP_NUM_TASKS")) l.world_size = "SLURM_STEP_NUM_TASKS";
    return l;
  }

  [[noreturn]] MILLRACE_RARE static void disagree(const world& a, const world& b) {
    throw setup_error("the environment contains " + a.describe() + " and " + b.describe() + " at once", hint());
  }
  static const char* hint() { return "Unset the variables of other runs, or set .world explicitly"; }

  const Getenv& getenv_;
};

/// Returns the world of a session whose options do not specify a world: one process.
/// Throws setup_error if the environment indicates several processes or is contradictory.
world world_by_default();

/// Returns the number of the run's processes on this machine. Reads the number from `mine`, or else from the
/// environment. Returns 1 if the number is unknown.
std::size_t processes_of_machine(const world& mine) noexcept;

}   // namespace detail

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/item/impl/world.inl>
#endif
