// An accelerator that only computes a schedule: one queue of steps and one copy engine, both in order, on the steady
// clock.
//
//   bench::emulated_accelerator chip({.pinned_bytes_per_second = 12e9, .pageable_bytes_per_second = 6e9});
//   mr::to_device({.device = chip.device()})               // copies at that speed, from "pinned" slots
//   chip.launch_step(0.02);                                // computes for 20 ms without CPU time
//
// Each piece of work starts when it is queued, its predecessor in its queue has ended, and the event of the other queue
// that it waits for has occurred; its end follows from its length. Therefore starts and ends are exact, known when the
// work is queued, and independent of late wake-ups of the host; only wait() sleeps. Bytes are copied at once: nothing
// here reads them, and only their time of arrival is emulated. A launch costs much less than the microseconds of a GPU
// driver. Threads: any.
#pragma once

#include "accelerator.hpp"

#include <millrace/base/clock.hpp>
#include <millrace/device/host.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace bench {

struct emulated_options {
  double pinned_bytes_per_second = 12e9;
  double pageable_bytes_per_second = 6e9;
  std::int64_t copy_latency_ns = 10'000;
};

/// Both queues, as an implementation of the library's device interface.
class emulated_backend final : public millrace::host_backend {
 public:
  explicit emulated_backend(emulated_options options) : options_(options) {}

  std::string name() const override { return "emulated accelerator"; }
  bool leases_host_slots() const override { return false; }

  std::unique_ptr<millrace::device_event> make_event() override { return std::make_unique<event>(); }
  void copy_waits_for(millrace::device_event& mark) override {
    const std::lock_guard lock(mutex_);
    copies_end_ns_ = std::max(copies_end_ns_, static_cast<event&>(mark).reached_ns);
  }
  void copy_to_device(void* to, const void* from, std::size_t bytes) override {
    copy({to, from, bytes, options_.pinned_bytes_per_second});
  }
  void record_copy(millrace::device_event& mark) override {
    const std::lock_guard lock(mutex_);
    static_cast<event&>(mark).reached_ns = copies_end_ns_;
  }
  void record(millrace::device_event& mark, millrace::stream_view) override {
    const std::lock_guard lock(mutex_);
    static_cast<event&>(mark).reached_ns = steps_end_ns_;
  }
  void stream_waits_for(millrace::stream_view, millrace::device_event& mark) override {
    const std::lock_guard lock(mutex_);
    steps_end_ns_ = std::max(steps_end_ns_, static_cast<event&>(mark).reached_ns);
  }
  void wait(millrace::device_event& mark) override {
    std::int64_t until_ns;
    {
      const std::lock_guard lock(mutex_);
      until_ns = static_cast<event&>(mark).reached_ns;
    }
    sleep_until(until_ns);
  }

  void launch_step(std::int64_t length_ns) {
    const std::lock_guard lock(mutex_);
    const std::int64_t start_ns = std::max(steps_end_ns_, now_ns());
    steps_end_ns_ = start_ns + length_ns;
    steps_.push_back({1e-9 * static_cast<double>(start_ns), 1e-9 * static_cast<double>(steps_end_ns_)});
  }
  void copy_and_wait(const void* from, std::size_t bytes) {
    if (staging_.size() < bytes) staging_.resize(bytes);
    sleep_until(copy({staging_.data(), from, bytes, options_.pageable_bytes_per_second}));
  }
  void wait_for_steps() {
    std::int64_t until_ns;
    {
      const std::lock_guard lock(mutex_);
      until_ns = steps_end_ns_;
    }
    sleep_until(until_ns);
  }
  std::vector<span> take_steps() {
    const std::lock_guard lock(mutex_);
    return std::exchange(steps_, {});
  }

 private:
  struct event : millrace::device_event {
    std::int64_t reached_ns = 0;   // guarded by mutex_; never recorded: reached
  };
  struct copy_work {
    void* to;
    const void* from;
    std::size_t bytes;
    double bytes_per_second;
  };

  static std::int64_t now_ns() { return millrace::detail::read_clock_ns(CLOCK_MONOTONIC); }
  static void sleep_until(std::int64_t until_ns) {
    if (until_ns > now_ns())
      std::this_thread::sleep_until(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(until_ns)));
  }

  /// Returns the end of the copy. The time of memcpy is part of the copy's time, if that is longer.
  std::int64_t copy(const copy_work& work) {
    const auto length_ns = static_cast<std::int64_t>(1e9 * static_cast<double>(work.bytes) / work.bytes_per_second);
    std::int64_t end_ns;
    {
      const std::lock_guard lock(mutex_);
      end_ns = copies_end_ns_ = std::max(copies_end_ns_, now_ns()) + options_.copy_latency_ns + length_ns;
    }
    std::memcpy(work.to, work.from, work.bytes);
    return end_ns;
  }

  const emulated_options options_;
  std::mutex mutex_;
  std::int64_t steps_end_ns_ = 0, copies_end_ns_ = 0;   // of the queued work
  std::vector<span> steps_;
  std::vector<std::byte> staging_;   // of the trainer's thread
};

class emulated_accelerator final : public accelerator {
 public:
  explicit emulated_accelerator(emulated_options options = {})
      : options_(options), backend_(std::make_shared<emulated_backend>(options)) {}

  std::string description() const override {
    char text[160];
    std::snprintf(text, sizeof text,
                  "no GPU: emulated on the host, copies at %.0f GB/s (blocking: %.0f GB/s), steps of given length",
                  1e-9 * options_.pinned_bytes_per_second, 1e-9 * options_.pageable_bytes_per_second);
    return text;
  }
  millrace::device device() override { return millrace::device(backend_); }
  millrace::stream_view stream() override { return {}; }
  void launch_step(double seconds) override { backend_->launch_step(static_cast<std::int64_t>(1e9 * seconds)); }
  void copy_and_wait(const void* from, std::size_t bytes) override { backend_->copy_and_wait(from, bytes); }
  void wait() override { backend_->wait_for_steps(); }
  std::vector<span> take_steps() override { return backend_->take_steps(); }

 private:
  const emulated_options options_;
  const std::shared_ptr<emulated_backend> backend_;
};

}   // namespace bench
