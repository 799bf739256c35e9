// Runs the workers of sessions in a tbb::task_arena of your program.
//
//   #include <millrace/adapt/tbb.hpp>                                   // link with -ltbb
//   tbb::task_arena arena(8, 0);
//   mr::session run{std::move(flow), {.threads = 6, .executor = mr::tbb_executor(arena)}};
//
// Opt-in: includes oneTBB's headers. Sessions always need oneTBB. Without an executor, each session has its own arenas.
// Workers: the arena has places for arena.max_concurrency() threads, and concurrency() returns this number. Places that
// are reserved for your own threads (by default one) run no workers. For example, task_arena(8) runs 7 workers
// concurrently, and task_arena(8, 0) runs 8. Exception: an arena with one place runs one worker, even if this place is
// reserved.
// Threads of the process: oneTBB starts at most one thread fewer than the affinity mask has cores. If an arena needs
// more threads, oneTBB prints a warning. To allow more threads, create a tbb::global_control with a larger
// max_allowed_parallelism. Sessions with an executor do not create a tbb::global_control. A worker may run algorithms
// of oneTBB, such as parallel_for. While a worker waits for an algorithm, its thread runs no other worker. oneTBB may
// change the order of tasks, but batches do not depend on this order.
// Errors and threads: the rules of executor (run/executor.hpp). Lifetime: the arena must outlive the sessions. You need
// not initialize the arena. Fork: in a child process, oneTBB has no threads.
#pragma once

#if !__has_include(<oneapi/tbb/task_arena.h>)
#error "millrace: oneTBB is not installed: apt-get install libtbb-dev"
#endif
#include <oneapi/tbb/task_arena.h>

#include <millrace/base/version.hpp>
#include <millrace/run/executor.hpp>

#include <functional>
#include <memory>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Runs tasks in a user's arena.
class task_arena_executor final : public executor {
 public:
  explicit task_arena_executor(tbb::task_arena& arena) : arena_(&arena) {}
  void submit(std::function<void()> task) override {
    arena_->enqueue([task = std::move(task)] { tbb::this_task_arena::isolate([&] { task(); }); });
  }
  unsigned concurrency() const noexcept override { return static_cast<unsigned>(arena_->max_concurrency()); }

 private:
  tbb::task_arena* const arena_;
};

}   // namespace detail

/// Returns an executor that runs tasks in `arena`. The arena must outlive the sessions that use the executor.
inline std::shared_ptr<executor> tbb_executor(tbb::task_arena& arena) {
  return std::make_shared<detail::task_arena_executor>(arena);
}

}}   // namespace millrace
