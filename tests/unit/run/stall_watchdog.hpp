// Ends the program if a run stalls; without it the test would wait forever.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <thread>

class stall_watchdog {
 public:
  stall_watchdog() : thread_([this] {
    std::unique_lock lock(mutex_);
    // On a crowded machine a run is slow, but it uses CPU time.
    for (int interval = 0; interval < 5; ++interval) {
      const std::clock_t before = std::clock();
      if (changed_.wait_for(lock, std::chrono::minutes(2), [this] { return over_; })) return;
      if (std::clock() - before < CLOCKS_PER_SEC) break;
    }
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
