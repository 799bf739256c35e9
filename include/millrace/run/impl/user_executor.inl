// Definitions for user_executor.hpp.
#pragma once

#include <millrace/run/user_executor.hpp>

#include <millrace/base/numa.hpp>
#include <millrace/run/session_share.hpp>
#include <millrace/work/schedule/arena_executor.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE user_executor::user_executor(options o) : owned_(o.to), queue_(std::make_shared<queue>(std::move(o))) {
  add_stage();   // represents the user's other work, so that workers do not sleep
}

MILLRACE_INLINE void user_executor::submit(std::shared_ptr<worker_task> task, std::size_t worker) {
  queue_->add({std::move(task), worker});
}

MILLRACE_INLINE void user_executor::release_threads() noexcept { queue_->stop(); }

MILLRACE_INLINE std::exception_ptr user_executor::error() const noexcept { return queue_->error(); }

MILLRACE_INLINE std::string user_executor::waits() const { return queue_->waits(); }

MILLRACE_INLINE void user_executor::queue::add(entry e) {
  std::unique_lock lock(mutex_);
  if (stopped_) {
    lock.unlock();
    return e.task->run_as_worker(e.worker);
  }
  waiting_.push(std::move(e));
  if (tasks_ == options_.max_tasks) return;   // a task that ends runs this entry
  ++tasks_;
  ++not_begun_;
  ++uses_;
  lock.unlock();
  submit_task();
}

MILLRACE_INLINE void user_executor::queue::run_oldest() noexcept {
  entry next{};
  {
    const std::lock_guard lock(mutex_);
    --not_begun_;
    if (waiting_.empty()) {   // stopped
      --tasks_;
      return;
    }
    next = waiting_.pop();
    ++uses_;
  }
  next.task->run_as_worker(next.worker);
  next.task.reset();
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || waiting_.size() <= not_begun_) {   // each waiting worker has a task
      --tasks_;
      if (--uses_ == 0) unused_.notify_all();
      return;
    }
    ++not_begun_;
  }
  submit_task();
}

MILLRACE_INLINE void user_executor::queue::submit_task() noexcept {
  try {
    const core_scope anywhere(options_.process_cores);
    to_->submit([self = shared_from_this()] { self->run_oldest(); });
  } catch (...) {
    fail();
  }
  const std::lock_guard lock(mutex_);
  if (--uses_ == 0) unused_.notify_all();
}

MILLRACE_INLINE void user_executor::queue::fail() noexcept {
  {
    const std::lock_guard lock(mutex_);
    --tasks_;
    --not_begun_;
    if (std::exchange(error_, error_ ? error_ : std::current_exception())) return;
  }
  options_.failed();
}

MILLRACE_RARE void user_executor::queue::stop() noexcept {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  while (!waiting_.empty()) {
    const entry next = waiting_.pop();
    lock.unlock();
    next.task->run_as_worker(next.worker);
    lock.lock();
  }
  unused_.wait(lock, [&] { return uses_ == 0; });
}

MILLRACE_INLINE std::exception_ptr user_executor::queue::error() const noexcept {
  const std::lock_guard lock(mutex_);
  return error_;
}

MILLRACE_RARE std::string user_executor::queue::waits() const {
  const std::lock_guard lock(mutex_);
  return "executor: " + std::to_string(not_begun_) + " of " + std::to_string(tasks_) + " tasks have not begun";
}

MILLRACE_RARE owner<worker_executor> new_worker_executor(const session_options& o, unsigned workers,
                                                         const std::vector<unsigned>& cores,
                                                         std::function<void()> failed) {
  if (workers == 0) return nullptr;
  if (!o.executor)
    return new_arena_executor({.workers = workers, .cores = cores, .shared_cores = shared_cores(o, cores)});
  // submit() may start a thread, which must not inherit the cores of an I/O thread.
  return make_owner<user_executor>(
      user_executor::options{.to = o.executor,
                             .max_tasks = workers,
                             .process_cores = cores.empty() ? cores : allowed_cores(numbers_in_sysfs_list("0-4095")),
                             .failed = std::move(failed)});
}

}}}   // namespace millrace::detail
