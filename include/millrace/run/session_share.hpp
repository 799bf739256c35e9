// The share of a machine's cores and memory that a session uses by default.
//
//   const unsigned workers = mr::detail::automatic_workers(options, cores);   // cores near the device; if empty, all
//
// The ranks on one machine divide its cores and memory. `options` must be a result of checked(), which sets
// session_options::world.
// Errors: none. Threads: any thread may call the functions, which read the state of the machine.
#pragma once

#include <millrace/base/machine.hpp>
#include <millrace/run/session_options.hpp>

#include <algorithm>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the number of cores that workers may use: the share of this process. If the list `cores` is not empty, the
/// result is at most the length of this list.
inline unsigned cores_for_workers(const session_options& o, const std::vector<unsigned>& cores) {
  const unsigned usable = share_of_machine(processes_of_machine(o.world.value())).cores;
  return cores.empty() ? usable : std::min(usable, static_cast<unsigned>(cores.size()));
}
/// Returns the default number of workers: cores_for_workers() minus one core for the trainer, but at least 1.
inline unsigned automatic_workers(const session_options& o, const std::vector<unsigned>& cores) {
  return std::max(2U, cores_for_workers(o, cores)) - 1;
}
/// Returns a quarter of the memory that this process may use.
inline std::size_t automatic_memory(const session_options& o) {
  return share_of_machine(processes_of_machine(o.world.value())).memory_bytes / 4;
}
/// Returns the description of the world for the start line; empty for a single process.
inline std::string world_text(const world& mine) {
  if (mine.size <= 1) return "";
  std::string text = mine.describe();
  if (const std::size_t sharers = processes_of_machine(mine); sharers > 1 && mine.local_size == 0)
    text += ", one of " + std::to_string(sharers) + " on this machine";
  return text + "; ";
}
/// If session_options::threads is greater than cores_for_workers(), returns cores_for_workers(), the number of cores
/// that the workers share; otherwise 0. Also returns 0 if tuning determines the number of active workers. Queries the
/// machine only if necessary, at a cost of up to 0.1 ms.
inline std::size_t shared_cores(const session_options& o, const std::vector<unsigned>& cores) {
  if (o.threads.value_or(0) < 2 || o.tuning) return 0;
  const unsigned count = cores_for_workers(o, cores);
  return *o.threads > count ? count : 0;
}

}}}   // namespace millrace::detail
