// The share of a machine's cores and memory that a session takes by default.
//
//   const unsigned workers = mr::detail::automatic_workers(options, cores);   // cores: those near the device, or none
//
// The ranks of one machine divide it. Errors: none. Threads: pure functions that read the machine's state.
#pragma once

#include <millrace/run/session_options.hpp>

#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns how many cores workers may use: of these, or of any. The run's processes on this machine divide them.
unsigned cores_for_workers(const session_options& o, const std::vector<unsigned>& cores);
/// Returns a core for each worker and one for the trainer.
unsigned automatic_workers(const session_options& o, const std::vector<unsigned>& cores);
/// Returns a quarter of the memory that this process may use.
std::size_t automatic_memory(const session_options& o);
/// Returns the start line's words for the world; empty for a process alone.
std::string world_text(const world& mine);
/// Returns how many cores the workers share; 0: each has one, or tuning decides how many are active. Only looks at the
/// machine where it has to, which takes up to 0.1 ms.
std::size_t shared_cores(const session_options& o, const std::vector<unsigned>& cores);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/session_share.inl>
#endif
