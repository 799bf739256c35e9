// Runs tasks on oneTBB's workers, in an arena of its own. The only header that includes oneTBB.
//
//   mr::detail::arena_executor workers(8);
//   workers.submit(task, 3);                 // runs on one of oneTBB's threads, as worker 3
//
// Errors: none. Threads: any thread may submit; submit() does not wait.
#pragma once

#include <millrace/work/executor.hpp>

#if !__has_include(<oneapi/tbb/version.h>)
#error "millrace: oneTBB is not installed: apt-get install libtbb-dev"
#endif
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <thread>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Runs tasks on oneTBB's workers.
class arena_executor final : public executor {
 public:
  explicit arena_executor(unsigned workers)
      : limit_(tbb::global_control::max_allowed_parallelism, max_threads(workers)),
        arena_(static_cast<int>(workers), 0) {
    arena_.initialize();
  }

  /// Returns true: the stages of a session share these workers.
  bool shared() const noexcept override { return true; }
  /// Queues a task for the worker with this index and returns at once.
  void submit(std::shared_ptr<worker_task> task, std::size_t worker) override {
    arena_.enqueue([task = std::move(task), worker] {
      // A user's callable may wait for its own TBB work. Isolation stops that wait from running another dispatcher's
      // task.
      tbb::this_task_arena::isolate([&] { task->run_as_worker(worker); });
    });
  }

  /// Returns the thread limit of the process. It covers all sessions, the user's own TBB work, and the caller that does
  /// not join in.
  static std::size_t max_threads(std::size_t workers) noexcept {
    return std::max({std::size_t{32}, std::size_t{4} * std::thread::hardware_concurrency(), workers + 1});
  }

 private:
  tbb::global_control limit_;
  tbb::task_arena arena_;
};

}}}  // namespace millrace::detail
