// Sessions begin and end; the threads of oneTBB, which never end, stay few. Own threads end when their queue is empty.
#include <millrace/work/schedule/arena_executor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
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

TEST_CASE("one arena after the other leaves no more threads than are in use") {
  for (int session = 0; session < 150; ++session) {
    std::atomic<int> done{0};
    mr::detail::arena_executor workers({.workers = 4});
    const auto task = std::make_shared<counted_task>(done);
    for (int i = 0; i < 16; ++i) workers.submit(task, 0);
    while (done < 16) std::this_thread::yield();
  }
  const std::size_t most = std::max<std::size_t>(32, 4 * std::thread::hardware_concurrency());
  CHECK(threads_of_this_process() > 1);
  CHECK(threads_of_this_process() <= most + 4);   // and a sanitizer's
}

TEST_CASE("workers that were requested by number start, however few cores there are") {
  const unsigned requested = std::max(40U, 5 * std::thread::hardware_concurrency());
  struct meeting final : mr::detail::worker_task {
    void run_as_worker(std::size_t) noexcept override {
      ++count;
      while (count < all) std::this_thread::yield();   // until the last of them has started
    }
    std::atomic<unsigned> count{0};   // exists as long as a worker reads it
    unsigned all = 0;
  };
  for (std::size_t stages = 1; stages <= 2; ++stages)
    for (int round = 0; round < 5; ++round) {
      CAPTURE(stages);
      mr::detail::arena_executor workers({.workers = requested, .shared_cores = 2});
      for (std::size_t i = 0; i < stages; ++i) workers.add_stage();
      const auto task = std::make_shared<meeting>();
      task->all = requested;
      for (unsigned i = 0; i < requested; ++i) workers.submit(task, i);
      while (task->count < requested) std::this_thread::yield();
      CHECK(task->count == requested);
    }
}

TEST_CASE("own threads run queued tasks before they end") {
  struct gate final : mr::detail::worker_task {
    void run_as_worker(std::size_t) noexcept override {
      while (!open) std::this_thread::yield();
    }
    std::atomic<bool> open{false};
  };
  std::atomic<int> done{0};
  const auto closed = std::make_shared<gate>();
  std::thread opens;
  {
    mr::detail::thread_executor own(1);
    own.submit(closed, 0);
    for (int i = 0; i < 3; ++i) own.submit(std::make_shared<counted_task>(done), 0);
    opens = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));   // the executor is being destroyed by then
      closed->open = true;
    });
  }
  opens.join();
  CHECK(done == 3);
}
