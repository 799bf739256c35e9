// Creates an executor on oneTBB's workers, without oneTBB's headers.
//
//   auto workers = mr::detail::new_arena_executor({.workers = 8});   // on oneTBB's threads, shared by the process
//   workers->submit(std::move(task), worker);
//
// In a forked child process, the executor starts its own threads, because oneTBB's threads exist only in the parent.
// Errors: none. Threads: any. Lifetime: see worker_executor.hpp.
#pragma once

#include <millrace/work/schedule/worker_executor.hpp>

#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns an executor that runs tasks on oneTBB's workers, in the executor's own arenas.
std::unique_ptr<worker_executor> new_arena_executor(const arena_options& o);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/work/schedule/impl/new_arena_executor.inl>
#endif
