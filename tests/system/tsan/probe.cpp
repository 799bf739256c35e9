// Shows that ThreadSanitizer and its oneTBB work. Two tasks of an arena meet, so that they run on two threads, and then
// count: under a mutex, which is correct and must not be reported, or without it (PLANTED_RACE), which must be.
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

int main() {
  // Without it a machine of two cores gets one worker, and two tasks never meet.
  const tbb::global_control workers(tbb::global_control::max_allowed_parallelism, 3);
  tbb::task_arena arena(2, 0);
  std::mutex mutex;
  std::condition_variable one_more_done;
  int done = 0;
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> arrived = 0;
    int count = 0;
    for (int task = 0; task < 2; ++task) {
      arena.enqueue([&] {
        arrived.fetch_add(1, std::memory_order_relaxed);   // relaxed: it must order nothing between the two
        while (arrived.load(std::memory_order_relaxed) < 2) {}
#ifdef PLANTED_RACE
        ++count;
        const std::lock_guard lock(mutex);
#else
        const std::lock_guard lock(mutex);
        ++count;
#endif
        ++done;
        one_more_done.notify_one();
      });
    }
    std::unique_lock lock(mutex);
    one_more_done.wait(lock, [&] { return done == 2 * (round + 1); });
    if (count == 0) return 1;
  }
}
