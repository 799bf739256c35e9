// Runs tasks on oneTBB's workers, in separate arenas. Only this header and adapt/tbb.hpp include oneTBB.
//
//   mr::detail::arena_executor workers({.workers = 8});
//   workers.submit(task, 3);                 // runs on one of oneTBB's threads, as worker 3
//
// Thread limit: oneTBB has one thread limit for the process, the smallest limit of all tbb::global_control objects.
// Each executor owns such an object, which sets a large limit. The default limit is too small by one thread, because
// oneTBB expects that the calling thread also works in the arena. The calling thread is the trainer (the thread that
// calls next()), which does not work in the arena.
// Second arena: a queued task wakes all threads of its arena. If there are more workers than cores, usually only the
// first workers are active. Therefore the first workers have a separate small arena. A task in this arena wakes only as
// many threads as there are cores.
// Cores: if arena_options::cores is not empty, a thread is bound to these cores only during a task, because oneTBB's
// threads also run other work.
// Errors: none. Threads: any thread may submit; submit() does not wait. Lifetime: see worker_executor.hpp.
#pragma once

#include <millrace/base/numa.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/work/schedule/worker_executor.hpp>

#if !__has_include(<oneapi/tbb/version.h>)
#error "millrace: oneTBB is not installed: apt-get install libtbb-dev"
#endif
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Runs tasks on oneTBB's workers.
class arena_executor final : public worker_executor {
 public:
  MILLRACE_RARE explicit arena_executor(const arena_options& o)
      : shared_cores_(o.shared_cores),
        limit_(tbb::global_control::max_allowed_parallelism, max_threads(o.workers)),
        arena_(static_cast<int>(o.workers), 0),
        small_arena_(static_cast<int>(std::max<std::size_t>(1, o.shared_cores)), 0) {
    arena_.initialize();
    if (o.cores.empty()) return;
    cores_ = make_shared_object<core_choice>(core_choice{o.cores, allowed_cores(numbers_in_sysfs_list("0-4095"))});
  }

  /// Returns true, because the stages of a session share these workers.
  bool shared() const noexcept override { return true; }
  /// Returns the number of cores that the workers share; 0 if each worker has its own core.
  std::size_t cores() const noexcept override { return shared_cores_; }
  /// Queues a task for the worker with this index and returns immediately.
  void submit(std::shared_ptr<worker_task> task, std::size_t worker) override {
    // oneTBB may start a thread here, which must not inherit the cores of a pinned caller.
    std::optional<core_scope> anywhere;
    if (cores_) anywhere.emplace(cores_->process);
    tbb::task_arena& to = worker < shared_cores_ && stages() == 1 ? small_arena_ : arena_;
    to.enqueue([task = std::move(task), cores = cores_, worker] {
      std::optional<core_scope> here;
      if (cores) here.emplace(cores->tasks);
      // A user's callable may wait for its own oneTBB work. Isolation prevents this thread from running a task of
      // another dispatcher during the wait.
      tbb::this_task_arena::isolate([&] { task->run_as_worker(worker); });
    });
  }

  /// Returns the thread limit that an executor sets.
  static std::size_t max_threads(std::size_t workers) noexcept {
    const std::size_t cores = std::thread::hardware_concurrency();
    return std::max({std::size_t{32}, 4 * cores, workers + cores + 1});   // enough for the threads of both arenas
  }

 private:
  /// The cores for tasks, and the cores for other threads of the process.
  struct core_choice {
    std::vector<unsigned> tasks, process;
  };

  const std::size_t shared_cores_;
  tbb::global_control limit_;
  tbb::task_arena arena_;
  tbb::task_arena small_arena_;                // for workers below shared_cores_, if only one stage submits tasks
  std::shared_ptr<const core_choice> cores_;   // null if tasks may use any core; shared with queued tasks
};

/// Returns the ID of the process that first called this function. If the parent called the function before a fork, the
/// child also gets the parent's ID.
inline int first_process_with_workers() noexcept {
  static const int process = getpid();
  return process;
}

/// Returns an executor that runs tasks on oneTBB's workers, in the executor's own arenas. In a forked child process,
/// the executor starts its own threads, because oneTBB's threads exist only in the parent.
inline MILLRACE_RARE_CODE owner<worker_executor> new_arena_executor(const arena_options& o) {
  if (first_process_with_workers() != getpid()) return make_owner<thread_executor>(o.workers);
  return make_owner<arena_executor>(o);
}

}}}   // namespace millrace::detail
