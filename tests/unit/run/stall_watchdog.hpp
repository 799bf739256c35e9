// Ends the program if a run stalls; without it the test would wait forever.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

class stall_watchdog {
 public:
  explicit stall_watchdog(std::chrono::seconds patience = std::chrono::minutes(2)) : thread_([this, patience] {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, patience, [this] { return over_; })) return;
    std::fputs("a run has stalled\n", stderr);
    std::abort();
  }) {}
  stall_watchdog(const stall_watchdog&) = delete;
  stall_watchdog& operator=(const stall_watchdog&) = delete;
  ~stall_watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;   // last: it uses the others
};
