// Defines the interface of an executor, which runs the workers of sessions on the user's threads. Implement this
// interface if your process manages its own threads.
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
// workers. The session still has I/O threads, a thread for copies to a device, and threads for blocking maps and for
// stages that run serially.
// Number: at most min(threads, concurrency()) tasks of a session are queued or running at the same time. Tuning does
// not exceed this number.
// Tasks: a task ends after about 5 ms, but not before it has completed a claim (samples that a worker processes
// together). A task waits only if a callable of the flow waits. A task never throws. An executor may run tasks late and
// in any order. The results of the session do not depend on this order. While the session lives, each task must run
// exactly once.
// Deadlocks: submit() must not run the task, wait for a task, or call the session. The caller of submit() may have
// locked mutexes of the session. If a thread of the executor calls next(), another thread of the executor must be free
// to run the tasks.
// Shutdown: when a session is destroyed, or ends with an error, it waits for its running tasks and for calls of
// submit(). Afterwards, the session never uses the executor. If a task begins later, it does nothing.
// Errors: an exception of submit() ends the run. next() throws this exception after the batches that are already
// complete. With an executor, the constructor of a session throws setup_error if concurrency() or
// session_options::threads is 0.
// Threads: several threads of the session and of the user may call submit() at the same time. Sessions may share an
// executor.
// Lifetime: the session shares ownership of the executor, and releases it on the thread that destroys the session.
// Fork: a child process has none of its parent's threads. A session in the child needs an executor that was created in
// the child.
// Cost: a few microseconds for each task: one allocation, four locks, and one call of submit().
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
  /// Returns the maximum number of tasks that can run at the same time; at least 1. Each session calls concurrency()
  /// once, at its start.
  virtual unsigned concurrency() const noexcept = 0;
};

}}   // namespace millrace
