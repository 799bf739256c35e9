// Definitions for new_arena_executor.hpp.
#pragma once

#include <millrace/work/schedule/new_arena_executor.hpp>

#include <millrace/work/schedule/arena_executor.hpp>

#include <unistd.h>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the number of the process that first called this function; a forked child gets the number of its parent.
MILLRACE_INLINE int first_process_with_workers() noexcept {
  static const int process = getpid();
  return process;
}

MILLRACE_INLINE std::unique_ptr<worker_executor> new_arena_executor(const arena_options& o) {
  if (first_process_with_workers() != getpid()) return std::make_unique<thread_executor>(o.workers);
  return std::make_unique<arena_executor>(o);
}

}}}  // namespace millrace::detail
