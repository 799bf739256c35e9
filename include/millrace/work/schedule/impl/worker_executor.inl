// Definitions for worker_executor.hpp.
#pragma once

#include <millrace/work/schedule/worker_executor.hpp>

#include <millrace/measure/meters/trace_range.hpp>
#include <millrace/sync/start_thread.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE thread_executor::thread_executor(unsigned threads) {
  queue_.reserve(threads);   // so that submit() needs no memory
  try {
    start_threads(threads_, threads, [this](std::size_t) { work(); });
  } catch (...) {
    stop();
    throw;
  }
}

MILLRACE_RARE thread_executor::~thread_executor() { stop(); }

MILLRACE_INLINE void thread_executor::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (auto& t : threads_) t.join();
}

MILLRACE_INLINE void thread_executor::submit(std::shared_ptr<worker_task> task, std::size_t worker) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push({std::move(task), worker});
  }
  changed_.notify_one();
}

MILLRACE_INLINE void thread_executor::work() {
  name_worker_thread("millrace-wait");
  for (;;) {
    entry next;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      next = queue_.pop();
    }
    next.task->run_as_worker(next.worker);
  }
}

}}}   // namespace millrace::detail
