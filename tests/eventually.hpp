// Waits for a condition instead of a time: on a busy machine a thread may have to wait long for a core.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <thread>

/// Whether the condition becomes true. The limit only guards against a test that would wait for ever.
template <class Condition>
bool eventually(Condition&& condition) {
  using clock = std::chrono::steady_clock;
  const clock::time_point limit = clock::now() + std::chrono::minutes(5);
  while (!condition()) {
    if (clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Whether a trial that measures sleeps succeeds with one of five scales, 1 to 16. A wait for a core is a smaller part
/// of a longer sleep: a quiet machine needs one trial, and a busy one several. trial(scale) returns a bool.
template <class Trial>
bool at_some_scale(Trial&& trial) {
  for (int scale = 1; scale <= 16; scale *= 2)
    if (trial(scale)) return true;
  return false;
}

/// Ends the program if a run stalls; without it the test would wait forever.
class stall_watchdog {
 public:
  stall_watchdog() : thread_([this] {
    std::unique_lock lock(mutex_);
    // On a crowded machine a run is slow, but it uses CPU time, although little if its threads yield.
    for (int interval = 0; interval < 5; ++interval) {
      const std::clock_t before = std::clock();
      if (changed_.wait_for(lock, std::chrono::minutes(2), [this] { return over_; })) return;
      if (std::clock() - before < CLOCKS_PER_SEC / 10) break;
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
