// Checks that ThreadSanitizer and its oneTBB work. Two tasks of an arena wait for each other, so that they run on two
// threads, and then count. With a mutex this must not be reported; without it (PLANTED_RACE) it must be.
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

int main() {
  // Without it, a machine with two cores has one worker, and the two tasks never meet.
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
        arrived.fetch_add(1, std::memory_order_relaxed);   // relaxed: it must not synchronize the tasks
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
