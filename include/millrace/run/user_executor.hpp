// Runs the workers of one session on a user's executor (run/executor.hpp).
//
//   mr::detail::user_executor workers({.to = options.executor, .max_tasks = 4, .failed = [] { wake_the_trainer(); }});
//   workers.submit(task, 3);      // a thread of the user runs the task as worker 3
//   workers.release_threads();    // call it after stop() and before join() of the segments
//
// This class submits tasks to the user's executor; each task runs one worker. The workers of all stages wait in one
// queue. When a task begins, it runs the worker that has waited longest. When a task ends, it submits another task if
// more workers wait than tasks are queued. Workers do not sleep on the user's threads, because these threads have other
// work.
// Errors: an exception of the user's submit() is stored for error(), and failed() is called once.
// Threads: any thread may submit; submit() does not wait. Lifetime: a task shares ownership of the queue only, and may
// outlive the session. A task must not own the executor. Otherwise the last task would destroy the executor on one of
// the executor's threads.
#pragma once

#include <millrace/item/owner.hpp>
#include <millrace/run/session_options.hpp>
#include <millrace/sync/queues.hpp>
#include <millrace/work/schedule/worker_executor.hpp>

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Runs workers on a user's executor.
class user_executor final : public worker_executor {
 public:
  struct options {
    std::shared_ptr<millrace::executor> to{};
    std::size_t max_tasks = 1;   ///< maximum of queued and running tasks
    /// Threads that the user's submit() starts may run on these cores. If empty, such threads inherit the cores of the
    /// thread that calls submit(); set this if the session's threads are bound to a part of the cores.
    std::vector<unsigned> process_cores{};
    std::function<void()> failed{};   ///< called when error() is set
  };
  explicit user_executor(options o);
  MILLRACE_RARE ~user_executor() override { release_threads(); }

  /// Returns true, because the stages of a session share the tasks.
  bool shared() const noexcept override { return true; }
  /// Queues `task` for the worker with this index, and returns immediately. After release_threads(), runs `task` during
  /// this call instead; the task then ends immediately.
  void submit(std::shared_ptr<worker_task> task, std::size_t worker) override;
  /// Runs queued workers, which end immediately, and waits for running tasks. The executor is not used afterwards.
  void release_threads() noexcept override;
  std::exception_ptr error() const noexcept override;
  std::string waits() const override;

 private:
  struct entry {
    std::shared_ptr<worker_task> task;
    std::size_t worker;
  };

  class queue : public std::enable_shared_from_this<queue> {
   public:
    explicit queue(options o) : options_(std::move(o)), to_(options_.to.get()) { options_.to.reset(); }

    void add(entry e);
    void stop() noexcept;
    std::exception_ptr error() const noexcept;
    std::string waits() const;

   private:
    /// The function that each task runs.
    void run_oldest() noexcept;
    /// Submits a task that `tasks_` already counts, then decrements `uses_`.
    void submit_task() noexcept;
    void fail() noexcept;

    options options_;
    executor* const to_;
    mutable std::mutex mutex_;   // guards all members below
    std::condition_variable unused_;
    fifo<entry> waiting_;
    std::size_t tasks_ = 0;       // number of queued and running tasks
    std::size_t not_begun_ = 0;   // number of tasks_ that have not begun
    std::size_t uses_ = 0;        // running tasks, and calls of the user's submit()
    bool stopped_ = false;
    std::exception_ptr error_{};
  };

  const std::shared_ptr<executor>
      owned_;   // not a member of the queue, because tasks own the queue, but must not own the executor
  const std::shared_ptr<queue> queue_;
};

/// Returns the executor of a session's workers; null without workers. If `o.executor` is set, the user's threads run
/// the workers, otherwise oneTBB's threads. `cores` are the cores to which the session's threads are bound; empty for
/// all cores. `failed` is called when error() is set.
owner<worker_executor> new_worker_executor(const session_options& o, unsigned workers,
                                           const std::vector<unsigned>& cores, std::function<void()> failed);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/user_executor.inl>
#endif
