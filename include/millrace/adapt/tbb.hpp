// Runs the workers of sessions in a tbb::task_arena of the program.
//
//   #include <millrace/adapt/tbb.hpp>                                   // link with -ltbb
//   tbb::task_arena arena(8, 0);
//   mr::session run{std::move(flow), {.threads = 6, .executor = mr::tbb_executor(arena)}};
//
// Opt-in: includes oneTBB. Sessions need oneTBB anyway, and without an executor they have their own arenas.
// Threads of the arena: concurrency() is the number of its slots, arena.max_concurrency(). Slots that are reserved for
// your threads, one by default, run no workers: task_arena(8) runs 7 workers concurrently, task_arena(8, 0) runs 8. An
// arena of one slot runs one worker.
// Threads of the process: oneTBB starts one thread fewer than the machine has cores, since it counts the caller, and
// warns of an arena with more slots. A tbb::global_control with a larger max_allowed_parallelism changes that. Sessions
// with an executor do not own one.
// A worker that waits for nested oneTBB work runs no other worker during the wait. oneTBB does not preserve the order
// of tasks, and no batch depends on it.
// Errors and threads: as executor (run/executor.hpp). Lifetime: the arena must outlive the sessions. It need not be
// initialized. Fork: oneTBB has no threads in a child.
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

}  // namespace detail

/// Returns an executor that runs tasks in this arena, which must outlive the sessions that use it.
inline std::shared_ptr<executor> tbb_executor(tbb::task_arena& arena) {
  return std::make_shared<detail::task_arena_executor>(arena);
}

}}  // namespace millrace
