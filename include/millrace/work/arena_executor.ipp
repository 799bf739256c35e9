// Defines what arena_executor.hpp declares, and new_arena_executor() of executor.hpp.
#pragma once

#include <millrace/work/arena_executor.hpp>

#include <millrace/base/machine.hpp>
#include <millrace/base/numa.hpp>

#include <optional>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE arena_executor::arena_executor(unsigned workers, const std::vector<unsigned>& cores)
    : workers_(workers),
      core_count_(cores.empty() ? usable_cores() : cores.size()),
      limit_(tbb::global_control::max_allowed_parallelism, max_threads(workers)),
      arena_(static_cast<int>(workers), 0),
      few_(static_cast<int>(std::min<std::size_t>(workers, core_count_)), 0) {
  arena_.initialize();
  if (cores.empty()) return;
  cores_ = std::make_shared<core_choice>(core_choice{cores, allowed_cores(numbers_of_list("0-4095"))});
}

MILLRACE_INLINE void arena_executor::submit(std::shared_ptr<worker_task> task, std::size_t worker) {
  // oneTBB may start a thread here, which must not inherit the cores of a pinned caller.
  std::optional<core_scope> anywhere;
  if (cores_) anywhere.emplace(cores_->process);
  tbb::task_arena& to = worker < core_count_ && core_count_ < workers_ && stages() == 1 ? few_ : arena_;
  to.enqueue([task = std::move(task), cores = cores_, worker] {
    std::optional<core_scope> here;
    if (cores) here.emplace(cores->tasks);
    // A user's callable may wait for its own TBB work. Isolation stops that wait from running another dispatcher's
    // task.
    tbb::this_task_arena::isolate([&] { task->run_as_worker(worker); });
  });
}

MILLRACE_INLINE std::unique_ptr<executor> new_arena_executor(unsigned workers, const std::vector<unsigned>& cores) {
  return std::make_unique<arena_executor>(workers, cores);
}

}}}  // namespace millrace::detail
