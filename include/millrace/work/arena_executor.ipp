// Defines what arena_executor.hpp declares, and new_arena_executor() of executor.hpp.
#pragma once

#include <millrace/work/arena_executor.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE arena_executor::arena_executor(unsigned workers)
    : limit_(tbb::global_control::max_allowed_parallelism, max_threads(workers)),
      arena_(static_cast<int>(workers), 0) {
  arena_.initialize();
}

MILLRACE_INLINE void arena_executor::submit(std::shared_ptr<worker_task> task, std::size_t worker) {
  arena_.enqueue([task = std::move(task), worker] {
    // A user's callable may wait for its own TBB work. Isolation stops that wait from running another dispatcher's
    // task.
    tbb::this_task_arena::isolate([&] { task->run_as_worker(worker); });
  });
}

MILLRACE_INLINE std::unique_ptr<executor> new_arena_executor(unsigned workers) {
  return std::make_unique<arena_executor>(workers);
}

}}}  // namespace millrace::detail
