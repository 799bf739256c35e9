// Lets a thread sleep until a condition is true. While no thread sleeps, a notification costs almost nothing.
//
//   bell.wait([&] { return work_to_do.load() > 0; });   // sleeper
//   ++work_to_do;                                       // all other threads: change the condition, ...
//   bell.ring();                                        // ... then ring
//
// The sleeper checks its condition after every ring. The variables of the condition must be seq_cst atomics or
// protected by a lock, so that no ring is missed. The condition must not call ring(), and must not throw. Errors: none.
// Threads: any number of sleepers; ring() wakes all, ring_one() wakes one.
#pragma once

#include <millrace/base/version.hpp>

#include <atomic>
#include <condition_variable>   // also declares std::chrono::nanoseconds; <chrono> would cost more compile time
#include <cstdint>
#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Wakes threads that sleep until a condition is true.
class doorbell {
 public:
  /// Wakes all sleepers. Each sleeper then checks its condition.
  void ring() noexcept {
    if (sleepers_.load() == 0) return;
    // If a thread has checked its condition, but does not sleep yet, the lock delays the notification until the thread
    // sleeps.
    { const std::lock_guard lock(mutex_); }
    rung_.notify_all();
  }

  /// Wakes one sleeper. Use ring_one() if a single thread can handle the change. In its condition, each sleeper must
  /// claim the change by an atomic exchange, so that only one sleeper handles the change.
  void ring_one() noexcept {
    if (sleepers_.load() == 0) return;
    { const std::lock_guard lock(mutex_); }
    rung_.notify_one();
  }

  /// Blocks until condition() is true.
  template <class Condition>
  void wait(const Condition& condition) {
    if (condition()) return;
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1);
    rung_.wait(lock, condition);
    sleepers_.fetch_sub(1);
  }
  /// Blocks until condition() is true, but at most for `time_ns` nanoseconds.
  template <class Condition>
  void wait_at_most(std::uint64_t time_ns, const Condition& condition) {
    if (condition()) return;
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1);
    rung_.wait_for(lock, std::chrono::nanoseconds(time_ns), condition);
    sleepers_.fetch_sub(1);
  }

 private:
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable rung_;
};

}}}   // namespace millrace::detail
