// Which process of how many this is, in data-parallel training.
//
//   mr::ranks mine{.rank = 1, .world_size = 4};          // by hand: from MPI_Comm_rank() and the like
//   auto mine = mr::world_from_launcher();               // or from the environment: mpirun, srun, torchrun
//   mine.describe();                                     // "rank 1 of 4 (Open MPI, local rank 1)"
//
// Nothing is read from the environment but by that call. No launcher: one process, rank 0 of 1. Of several launchers
// the innermost counts where it is known which that is: torchrun where its agent is at work (TORCHELASTIC_RUN_ID), then
// an MPI's, then Slurm, from whose job an MPI may have been started. Any other disagreement is an error, never a guess.
// Slurm counts inside a step of srun only: a batch script, and the shell of salloc, have the variables of a whole job
// (SLURM_PROCID=0, SLURM_NTASKS=64) and are one process all the same.
// Errors: setup_error that names the variable: half of a pair, no number, a rank that is not below the number of ranks,
// two launchers that contradict each other. Threads: reads the environment, which nobody may change meanwhile.
// Source: the documentation of torchrun, Open MPI, MVAPICH2, MPICH and Slurm (srun's output environment variables; the
// numbers of steps that are none of srun's lie above 0xfffffff0, slurm.h).
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/launcher.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI {

struct world {
  std::size_t rank = 0;
  std::size_t size = 1;
  std::size_t local_rank = 0;   ///< among the processes on this machine; 0 where the launcher does not say
  const char* from = "";        ///< the launcher's name

  std::string describe() const {
    std::string text = "rank " + std::to_string(rank) + " of " + std::to_string(size);
    if (*from != '\0') text += std::string(" (") + from + ", local rank " + std::to_string(local_rank) + ")";
    return text;
  }
  friend bool operator==(const world& a, const world& b) noexcept {
    return a.rank == b.rank && a.size == b.size && a.local_rank == b.local_rank;
  }
};

namespace detail {

/// `Look` is getenv, or a test's own.
template <class Look>
class launcher_reader {
 public:
  explicit launcher_reader(const Look& look) : look_(look) {}

  world read() const {
    const std::optional<world> plain = read_one(launcher_named("torchrun"));
    if (plain && set("TORCHELASTIC_RUN_ID")) return *plain;
    const std::optional<world> step = inside_srun_step() ? read_one(slurm_step()) : std::nullopt;
    std::optional<world> found;
    for (const char* name : {"Open MPI", "MVAPICH2", "MPICH"}) {
      const std::optional<world> next = read_one(launcher_named(name));
      const bool of_slurm = next && step && std::string_view(name) == "MPICH" && agree(*next, *step);   // its own PMI
      if (!next || of_slurm) continue;
      if (found && !agree(*found, *next)) disagree(*found, *next);
      if (!found) found = next;
    }
    if (!found) found = step;
    // RANK and WORLD_SIZE are names that much else sets, and leaves behind.
    if (plain && found && !agree(*plain, *found)) disagree(*plain, *found);
    return found.value_or(plain.value_or(world{}));
  }

 private:
  static bool agree(const world& a, const world& b) noexcept {
    return a.rank == b.rank && a.size == b.size;
  }

  static launcher launcher_named(std::string_view name) {
    for (const launcher& l : launchers)
      if (name == l.name) return l;
    return {};
  }

  bool set(const char* variable) const {
    const char* const text = look_(variable);
    return text && *text != '\0';
  }

  std::size_t number(const char* variable) const {
    const int value = launcher_number(look_(variable));
    if (value < 0)
      throw setup_error(std::string(variable) + "=" + printable(look_(variable)) + " is no number of processes",
                        hint());
    return static_cast<std::size_t>(value);
  }

  std::optional<world> read_one(const launcher& l) const {
    if (!set(l.rank) && !set(l.world_size)) return std::nullopt;
    const char* const missing = !set(l.rank) ? l.rank : !set(l.world_size) ? l.world_size : nullptr;
    if (missing)
      throw setup_error(std::string(missing == l.rank ? l.world_size : l.rank) + " (" + l.name + ") is set and " +
                            missing + " is not",
                        hint());
    world r{.rank = number(l.rank), .size = number(l.world_size), .local_rank = 0, .from = l.name};
    check_below(l.rank, l.world_size);
    if (set(l.local_rank)) {
      r.local_rank = number(l.local_rank);
      check_below(l.local_rank, l.world_size);
    }
    return r;
  }

  void check_below(const char* rank, const char* world_size) const {
    if (number(rank) >= number(world_size))
      throw setup_error(std::string(rank) + "=" + look_(rank) + " is not below " + world_size + "=" + look_(world_size),
                        hint());
  }

  bool inside_srun_step() const {
    const char* variable = set("SLURM_STEP_ID") ? "SLURM_STEP_ID" : "SLURM_STEPID";
    if (!set(variable)) return false;
    // The numbers above belong to batch scripts and interactive shells.
    const std::string_view text = look_(variable);
    return text.size() < 10 || (text.size() == 10 && text < "4294967280");
  }

  /// With the step's own number of tasks, where it differs from the job's.
  launcher slurm_step() const {
    launcher l = launcher_named("Slurm");
    if (set("SLURM_STEP_NUM_TASKS")) l.world_size = "SLURM_STEP_NUM_TASKS";
    return l;
  }

  [[noreturn]] static void disagree(const world& a, const world& b) {
    throw setup_error("the environment says " + a.describe() + " and " + b.describe() + " at once", hint());
  }
  static const char* hint() { return "Unset what does not belong to this run, or give the ranks by hand"; }

  const Look& look_;
};

}  // namespace detail

/// The ranks that the launcher of this process has put into its environment; rank 0 of 1 where there is none.
inline world world_from_launcher() {
  const auto look = [](const char* variable) -> const char* { return std::getenv(variable); };
  return detail::launcher_reader(look).read();
}

}}  // namespace millrace
