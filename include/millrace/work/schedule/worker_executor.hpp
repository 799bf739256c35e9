// Runs the tasks of dispatchers (objects that assign work to workers). arena_executor uses oneTBB's workers, and
// user_executor (run/user_executor.hpp) uses a user's threads. thread_executor starts its own threads, for a stage
// whose callables wait, for example for a network.
//
//   mr::detail::thread_executor workers(8);
//   workers.submit(std::move(task), worker);            // returns immediately; task is a std::shared_ptr<worker_task>
//
// Errors: none. Threads: any thread may submit; submit() does not wait.
// Lifetime: an executor may be destroyed while tasks are in its queue. Therefore tasks own the objects that they use.
#pragma once

#include <millrace/sync/queues.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A task that one worker runs once.
class worker_task {
 public:
  virtual ~worker_task() = default;
  /// Runs the task as the worker with this index.
  virtual void run_as_worker(std::size_t worker) noexcept = 0;
};

/// Runs tasks on threads.
class worker_executor {
 public:
  virtual ~worker_executor() = default;
  /// Queues a task for the worker with this index and returns immediately.
  virtual void submit(std::shared_ptr<worker_task> task, std::size_t worker) = 0;
  /// Returns whether the threads are the workers that all stages share; false if they are the threads of one stage.
  virtual bool shared() const noexcept { return false; }
  /// Returns the number of cores that the threads share; 0 if each thread has its own core, or if the threads mostly
  /// wait.
  virtual std::size_t cores() const noexcept { return 0; }
  /// Releases all threads that the executor does not own. Called between stop() and join() of the stages.
  virtual void release_threads() noexcept {}
  /// Returns the reason why the executor no longer runs tasks; null if it still runs tasks.
  virtual std::exception_ptr error() const noexcept { return {}; }
  /// Returns a line about the waiting tasks; empty if the executor does not know the waiting tasks.
  virtual std::string waits() const { return {}; }

  /// Increments the number of stages that submit tasks.
  void add_stage() noexcept { stages_.fetch_add(1); }
  /// Returns the number of stages that submit tasks.
  std::size_t stages() const noexcept { return stages_.load(); }

 private:
  std::atomic<std::size_t> stages_{0};
};

/// The number of workers of an executor, and their cores.
struct arena_options {
  unsigned workers = 1;
  std::vector<unsigned> cores{};   ///< cores for the workers; empty for any cores
  std::size_t shared_cores = 0;    ///< number of cores if there are more workers than cores; otherwise 0
};

/// Runs tasks on its own threads, for callables that wait.
class thread_executor final : public worker_executor {
 public:
  /// Starts the threads. The destructor runs the queued tasks and joins the threads.
  explicit thread_executor(unsigned threads);
  ~thread_executor() override;

  /// Queues a task for the worker with this index and returns immediately.
  void submit(std::shared_ptr<worker_task> task, std::size_t worker) override;

 private:
  struct entry {
    std::shared_ptr<worker_task> task;
    std::size_t worker;
  };

  void work();
  void stop() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  fifo<entry> queue_;   // at most one entry for each worker
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/work/schedule/impl/worker_executor.inl>
#endif
