// Where dispatcher tasks run: in oneTBB's workers, or on threads of their own for stages that wait. The only user of
// TBB besides the dispatcher itself.
//
//   arena_executor workers(8);        // eight of TBB's threads; W is a limit, the threads are shared by the process
//   workers.submit(task);             // returns at once
//
// oneTBB starts one worker fewer than asked, counting on the caller to join in; our caller is the trainer, which does
// not. A global_control with a large limit, held as long as the executor lives, makes it start them all; each session
// is bounded by its own arena. oneTBB never ends a thread, and starts others for a new arena while those of the one
// before are still on their way to sleep: the limit is what a process that makes session after session ends up with.
// The smallest limit alive counts for the process, so all executors have the same one, far above what has a use.
// Tasks own what they touch; an executor may be destroyed while tasks are still queued only if those tasks need nothing
// but themselves.
#pragma once

#include <millrace/measure/trace_range.hpp>
#include <millrace/sync/fifo.hpp>

// oneTBB 2021.8 includes <immintrin.h> for _mm_pause alone, which <emmintrin.h> has; the rest would add a tenth or more
// to what this library costs a compiler. So the guard of <immintrin.h> counts as set for as long as oneTBB is read:
// whoever includes that header later gets it all. Versions that this was not tried with are left alone.
#if !__has_include(<oneapi/tbb/version.h>)
#error "millrace: oneTBB is not installed: apt-get install libtbb-dev"
#endif
#include <oneapi/tbb/version.h>
#if defined(__x86_64__) && TBB_VERSION_MAJOR == 2021 && TBB_VERSION_MINOR <= 8 && \
    !defined(_IMMINTRIN_H_INCLUDED) && !defined(__IMMINTRIN_H) && (!defined(__clang__) || __clang_major__ <= 14)
#include <emmintrin.h>
#define _IMMINTRIN_H_INCLUDED   // g++'s
#define __IMMINTRIN_H           // clang's
#define MILLRACE_WITHOUT_IMMINTRIN
#endif
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#ifdef MILLRACE_WITHOUT_IMMINTRIN
#undef _IMMINTRIN_H_INCLUDED
#undef __IMMINTRIN_H
#undef MILLRACE_WITHOUT_IMMINTRIN
#endif

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Something to run once on some worker.
class worker_task {
 public:
  virtual ~worker_task() = default;
  virtual void run_on_seat(std::size_t seat) noexcept = 0;
};

class executor {
 public:
  virtual ~executor() = default;
  virtual void submit(std::shared_ptr<worker_task> task, std::size_t seat) = 0;
  /// Whether its threads are the workers, not those of one stage.
  virtual bool shared() const noexcept { return false; }
};

/// On workers of oneTBB: a session's own, or those of an arena of the user's.
/// A template only so that including it costs little.
template <class = void>
class basic_arena_executor final : public executor {
 public:
  explicit basic_arena_executor(unsigned workers)
      : limit_(tbb::global_control::max_allowed_parallelism, most_threads(workers)),
        arena_(static_cast<int>(workers), 0) {
    arena_.initialize();
  }

  bool shared() const noexcept override { return true; }
  void submit(std::shared_ptr<worker_task> task, std::size_t seat) override {
    arena_.enqueue([task = std::move(task), seat] {
      // A user's callable may wait for TBB work of its own; isolation keeps that wait from picking up another
      // dispatcher.
      tbb::this_task_arena::isolate([&] { task->run_on_seat(seat); });
    });
  }

  /// Of the process: of all sessions and the user's own TBB work, and the caller that does not join in.
  static std::size_t most_threads(std::size_t workers) noexcept {
    return std::max({std::size_t{32}, std::size_t{4} * std::thread::hardware_concurrency(), workers + 1});
  }

 private:
  tbb::global_control limit_;
  tbb::task_arena arena_;
};
using arena_executor = basic_arena_executor<>;

/// Own threads, for callables that wait. A template only so that including it costs little.
template <class = void>
class basic_thread_executor final : public executor {
 public:
  explicit basic_thread_executor(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~basic_thread_executor() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (auto& t : threads_) t.join();
  }

  void submit(std::shared_ptr<worker_task> task, std::size_t seat) override {
    {
      const std::lock_guard lock(mutex_);
      queue_.push({std::move(task), seat});
    }
    changed_.notify_one();
  }

 private:
  struct entry {
    std::shared_ptr<worker_task> task;
    std::size_t seat;
  };

  void work() {
    detail::name_worker_thread("millrace-wait");
    for (;;) {
      entry next;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
        if (queue_.empty()) return;
        next = queue_.pop();
      }
      next.task->run_on_seat(next.seat);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  fifo<entry> queue_;   // at most one entry a seat
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};
using thread_executor = basic_thread_executor<>;

}}  // namespace millrace
