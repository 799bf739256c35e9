// Defines what executor.hpp declares.
#pragma once

#include <millrace/work/executor.hpp>

#include <millrace/measure/trace_range.hpp>

#include <emmintrin.h>
#include <oneapi/tbb/version.h>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE arena_executor::arena_executor(unsigned workers)
    : limit_(tbb::global_control::max_allowed_parallelism, max_threads(workers)),
      arena_(static_cast<int>(workers), 0) {
  arena_.initialize();
}

MILLRACE_INLINE void arena_executor::submit(std::shared_ptr<worker_task> task, std::size_t worker) {
  arena_.enqueue([task = std::move(task), worker] {
    // A user's callable may wait for its own TBB work. Isolation stops that wait from running another dispatcher's
    // task.
    tbb::this_task_arena::isolate([&] { task->run_as_worker(worker); });
  });
}

MILLRACE_INLINE std::size_t arena_executor::max_threads(std::size_t workers) noexcept {
  return std::max({std::size_t{32}, std::size_t{4} * std::thread::hardware_concurrency(), workers + 1});
}

MILLRACE_INLINE thread_executor::thread_executor(unsigned threads) {
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

MILLRACE_INLINE thread_executor::~thread_executor() {
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
  detail::name_worker_thread("millrace-wait");
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

}}}  // namespace millrace::detail
