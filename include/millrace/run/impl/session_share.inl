// Defines what session_share.hpp declares.
#pragma once

#include <millrace/run/session_share.hpp>

#include <millrace/base/launcher.hpp>
#include <millrace/base/machine.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE unsigned cores_for_workers(const session_options& o, const std::vector<unsigned>& cores) {
  const unsigned usable = share_of_machine(processes_of_machine(o.world)).cores;
  return cores.empty() ? usable : std::min(usable, static_cast<unsigned>(cores.size()));
}

MILLRACE_INLINE unsigned automatic_workers(const session_options& o, const std::vector<unsigned>& cores) {
  return std::max(2U, cores_for_workers(o, cores)) - 1;
}

MILLRACE_INLINE std::size_t automatic_memory(const session_options& o) {
  return share_of_machine(processes_of_machine(o.world)).memory_bytes / 4;
}

MILLRACE_INLINE std::string world_text(const world& mine) {
  if (mine.size <= 1) return "";
  std::string text = mine.describe();
  if (const std::size_t sharers = processes_of_machine(mine); sharers > 1 && mine.local_size == 0)
    text += ", one of " + std::to_string(sharers) + " on this machine";
  return text + "; ";
}

MILLRACE_INLINE std::size_t shared_cores(const session_options& o, const std::vector<unsigned>& cores) {
  if (o.threads < 2 || o.tuning) return 0;
  const unsigned count = cores_for_workers(o, cores);
  return static_cast<unsigned>(o.threads) > count ? count : 0;
}

}}}  // namespace millrace::detail
