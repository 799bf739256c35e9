// Sessions come and go; the threads of oneTBB, which never end, stay few.
#include <millrace/work/executor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

namespace mr = millrace;

namespace {

struct counted_task final : mr::detail::worker_task {
  explicit counted_task(std::atomic<int>& sum) : done(&sum) {}
  void run_as_worker(std::size_t) noexcept override { ++*done; }
  std::atomic<int>* done;
};

std::size_t threads_of_this_process() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "Threads:") {
      std::size_t count = 0;
      status >> count;
      return count;
    }
  return 0;
}

}  // namespace

TEST_CASE("one arena after the other leaves no more threads behind than have a use") {
  for (int session = 0; session < 150; ++session) {
    std::atomic<int> done{0};
    mr::detail::arena_executor workers(4);
    const auto task = std::make_shared<counted_task>(done);
    for (int i = 0; i < 16; ++i) workers.submit(task, 0);
    while (done < 16) std::this_thread::yield();
  }
  const std::size_t most = std::max<std::size_t>(32, 4 * std::thread::hardware_concurrency());
  CHECK(threads_of_this_process() > 1);
  CHECK(threads_of_this_process() <= most + 4);   // and a sanitizer's
}

TEST_CASE("workers that were asked for by number come, however few cores there are") {
  const unsigned wanted = std::max(40U, 5 * std::thread::hardware_concurrency());
  std::atomic<unsigned> there{0};
  struct meeting final : mr::detail::worker_task {
    void run_as_worker(std::size_t) noexcept override {
      ++*count;
      while (*count < all) std::this_thread::yield();   // until the last of them has come
    }
    std::atomic<unsigned>* count = nullptr;
    unsigned all = 0;
  };
  mr::detail::arena_executor workers(wanted);
  const auto task = std::make_shared<meeting>();
  task->count = &there;
  task->all = wanted;
  for (unsigned i = 0; i < wanted; ++i) workers.submit(task, i);
  while (there < wanted) std::this_thread::yield();
  CHECK(there == wanted);
}
