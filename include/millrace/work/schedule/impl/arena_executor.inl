// Defines what arena_executor.hpp declares.
#pragma once

#include <millrace/work/schedule/arena_executor.hpp>

#include <millrace/base/numa.hpp>

#include <optional>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE arena_executor::arena_executor(const arena_options& o)
    : shared_cores_(o.shared_cores),
      limit_(tbb::global_control::max_allowed_parallelism, max_threads(o.workers)),
      arena_(static_cast<int>(o.workers), 0),
      few_(static_cast<int>(std::max<std::size_t>(1, o.shared_cores)), 0) {
  arena_.initialize();
  if (o.cores.empty()) return;
  cores_ = std::make_shared<core_choice>(core_choice{o.cores, allowed_cores(numbers_of_list("0-4095"))});
}

MILLRACE_INLINE void arena_executor::submit(std::shared_ptr<worker_task> task, std::size_t worker) {
  // oneTBB may start a thread here, which must not inherit the cores of a pinned caller.
  std::optional<core_scope> anywhere;
  if (cores_) anywhere.emplace(cores_->process);
  tbb::task_arena& to = worker < shared_cores_ && stages() == 1 ? few_ : arena_;
  to.enqueue([task = std::move(task), cores = cores_, worker] {
    std::optional<core_scope> here;
    if (cores) here.emplace(cores->tasks);
    // A user's callable may wait for its own TBB work. Isolation stops that wait from running another dispatcher's
    // task.
    tbb::this_task_arena::isolate([&] { task->run_as_worker(worker); });
  });
}

}}}  // namespace millrace::detail
