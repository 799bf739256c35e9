// Defines an executor: user threads that run the workers of sessions, for processes that manage their own threads.
//
//   struct pool_executor final : mr::executor {
//     explicit pool_executor(thread_pool& p) : pool(&p) {}
//     void submit(std::function<void()> task) override { pool->post(std::move(task)); }
//     unsigned concurrency() const noexcept override { return pool->size(); }
//     thread_pool* pool;
//   };
//   mr::session run{std::move(flow), {.threads = 4, .executor = std::make_shared<pool_executor>(pool)}};
//
// adapt/tbb.hpp provides an executor for a tbb::task_arena. With an executor, a session starts no thread for its
// workers. It still has I/O threads, a thread for copies to a device, and threads for blocking maps and for stages that
// run serially.
// Number: a session has at most min(threads, concurrency()) tasks at a time, queued or running. Tuning does not exceed
// this number.
// Tasks: a task ends after about 5 ms, or after one claim (samples that a worker processes together) if that is longer.
// A task waits only if a callable of the flow waits. It never throws. An executor may run tasks late and in any order,
// without effect on the order of the samples, random numbers or digests. While the session lives, each task must run
// exactly once.
// Deadlocks: submit() must not run the task, wait for a task, or call the session. The caller of submit() may have
// locked mutexes of the session. If a thread of the executor calls next(), another of its threads must be free to run
// the tasks.
// Shutdown: a session that is destroyed, or ends with an error, first waits for its running tasks and for calls of
// submit(). Afterwards, the session never uses the executor. A task that begins later does nothing.
// Errors: an exception of submit() ends the run. next() throws this exception after the batches that are already
// complete. The constructor of a session throws setup_error if concurrency() or `threads` is 0.
// Threads: threads of the session and of the user call submit(), several of them at the same time. Sessions may share
// an executor.
// Lifetime: the session shares ownership of the executor, and releases it on the thread that destroys the session.
// Fork: a child process has none of its parent's threads. A session in the child needs an executor that was created in
// the child.
// Cost: one allocation, four locks, and one call of submit() for each task, which is a few microseconds.
#pragma once

#include <millrace/base/version.hpp>

#include <functional>

namespace millrace { inline namespace MILLRACE_ABI {

/// User threads that run the workers of sessions.
class executor {
 public:
  virtual ~executor() = default;
  /// Queues a task for one of the threads, and returns without waiting. If submit() throws, the task must not run.
  virtual void submit(std::function<void()> task) = 0;
  /// Returns how many tasks can run at the same time; at least 1. A session calls concurrency() once, when the session
  /// starts.
  virtual unsigned concurrency() const noexcept = 0;
};

}}   // namespace millrace
