// Lets a thread sleep until somebody has news, at no cost for whoever brings news while nobody sleeps.
//
//   // sleeper:                                  // everybody else, after changing what the sleeper looks at:
//   bell.wait([&] { return work_to_do(); });     bell.ring();
//
// The condition is looked at again after every ring, and never missed: it must read what the others change through
// seq_cst atomics or a lock, and must neither ring nor throw. Any number of sleepers; ring() wakes all, ring_one() one.
// No polling; wait_at_most() is for who would rather come late than be woken for every bit of news.
#pragma once

#include <millrace/base/version.hpp>

#include <atomic>
#include <condition_variable>   // and the durations that wait_for takes; <chrono> adds a calendar
#include <cstdint>
#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI {

class doorbell {
 public:
  void ring() noexcept {
    if (sleepers_.load() == 0) return;
    // Taking the lock makes sure that a sleeper which has looked but not yet gone to sleep is not passed over.
    { const std::lock_guard lock(mutex_); }
    rung_.notify_all();
  }

  /// For news that one thread, whichever, deals with: the conditions of all have to take the news by an exchange.
  void ring_one() noexcept {
    if (sleepers_.load() == 0) return;
    { const std::lock_guard lock(mutex_); }
    rung_.notify_one();
  }

  template <class Condition>
  void wait(const Condition& condition) {
    if (condition()) return;
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1);
    rung_.wait(lock, condition);
    sleepers_.fetch_sub(1);
  }
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

}}  // namespace millrace
