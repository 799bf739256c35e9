// A device without hardware that copies at a chosen speed: tests of the copy path and benchmarks use it in place of a
// GPU.
//
//   mr::device slow = copying_device({.bytes_per_second = 12e9, .latency_ns = 10'000});
//   auto flow = mr::from(examples) | mr::batch<&example::features>({.size = 256})
//             | mr::to_device({.device = slow, .slots = 3});
//
// The device has its own memory. One copy thread works through a queue in order, like the copy engine of a GPU. An
// event is reached when the queue gets to it. Work on the user's streams is done when the call returns, so release
// events are reached at once. A copy lasts at least bytes / bytes_per_second + latency; 0 means as fast as memcpy.
#pragma once

#include <millrace/base/machine.hpp>
#include <millrace/device/host.hpp>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>   // also provides the clock for sleep_until

/// The speed of a copying_device().
struct copying_device_options {
  double bytes_per_second = 0;    ///< bytes per second; 0: as fast as memcpy
  std::uint64_t latency_ns = 0;   ///< nanoseconds added to each copy
};

class copying_backend final : public millrace::host_backend {
 public:
  explicit copying_backend(copying_device_options options) : options_(options), engine_([this] { work(); }) {}
  ~copying_backend() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    engine_.join();
  }

  std::string name() const override { return "host copy"; }
  bool leases_host_slots() const override { return false; }

  std::unique_ptr<millrace::device_event> make_event() override { return std::make_unique<event>(); }
  void copy_to_device(void* to, const void* from, std::size_t bytes) override { put({to, from, bytes, nullptr, 0}); }
  void record_copy(millrace::device_event& mark) override {
    auto& e = static_cast<event&>(mark);
    std::uint64_t generation;
    {
      const std::lock_guard lock(mutex_);
      generation = ++e.recorded;
    }
    try {
      put({nullptr, nullptr, 0, &e, generation});
    } catch (...) {
      const std::lock_guard lock(mutex_);
      --e.recorded;   // else its wait would not end
      throw;
    }
  }
  void wait(millrace::device_event& mark) override {
    auto& e = static_cast<event&>(mark);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return e.reached >= e.recorded; });
  }
  // A user's stream is synchronous here, so a release event is reached when it is recorded. A delivered batch must have
  // arrived, so the caller waits in place of the stream.
  void stream_waits_for(millrace::stream_view, millrace::device_event& mark) override { wait(mark); }

 private:
  struct event : millrace::device_event {
    std::uint64_t recorded = 0, reached = 0;   // guarded by mutex_
  };
  struct work_item {
    void* to;
    const void* from;
    std::size_t bytes;
    event* mark;
    std::uint64_t generation;
  };

  void put(work_item item) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(item);
    }
    changed_.notify_all();
  }

  void work() {
    millrace::detail::name_this_thread("millrace-copier");
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const work_item item = queue_.front();
      queue_.pop_front();
      if (item.mark) {
        item.mark->reached = std::max(item.mark->reached, item.generation);
        changed_.notify_all();
        continue;
      }
      lock.unlock();
      copy(item);
      lock.lock();
    }
  }

  void copy(const work_item& item) const {
    using clock = std::chrono::steady_clock;
    const auto start = clock::now();
    std::memcpy(item.to, item.from, item.bytes);
    double least_ns = static_cast<double>(options_.latency_ns);
    if (options_.bytes_per_second > 0) least_ns += static_cast<double>(item.bytes) / options_.bytes_per_second * 1e9;
    if (least_ns > 0)
      std::this_thread::sleep_until(start + std::chrono::nanoseconds(static_cast<std::int64_t>(least_ns)));
  }

  const copying_device_options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<work_item> queue_;
  bool stopping_ = false;
  std::thread engine_;
};

/// Returns a new copying device; default: as fast as memcpy.
inline millrace::device copying_device(copying_device_options options = {}) {
  return millrace::device(std::make_shared<copying_backend>(options));
}
