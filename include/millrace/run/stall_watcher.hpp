// Watches whether batches still come, and reports what each stage waits for when none does. It never ends anything.
//
//   mr::detail::stall_watcher watcher({.after_ns = 30'000'000'000}, times, [&] { return who_waits(); });
//
// Each stall is reported once; the next batch rearms the watcher. The time between the epochs of a loop and after the
// run's end does not count as a stall.
// Errors: what `tell` throws is dropped.
// Threads: one of its own, from construction to destruction. The destructor waits for a `tell` that is running.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/base/machine.hpp>
#include <millrace/measure/read_meter.hpp>
#include <millrace/measure/trainer_times.hpp>
#include <millrace/run/session_options.hpp>

#include <condition_variable>   // and the durations that its wait_for takes
#include <mutex>
#include <thread>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Reports stalls from a thread of its own.
class stall_watcher {
 public:
  /// Starts the thread. `trainer` must outlive the watcher; `who_waits` is called on the watcher's thread.
  stall_watcher(stall_watch watch, const trainer_times& trainer, std::function<std::string()> who_waits)
      : watch_(std::move(watch)), trainer_(&trainer), who_waits_(std::move(who_waits)), thread_([this] { look(); }) {}
  stall_watcher(const stall_watcher&) = delete;
  stall_watcher& operator=(const stall_watcher&) = delete;
  ~stall_watcher() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

 private:
  void look() {
    detail::name_this_thread("millrace-watch");
    std::uint64_t told_of_ns = 0;
    std::unique_lock lock(mutex_);
    while (!over_) {
      const trainer_times::state trainer = trainer_->now();
      const std::uint64_t now = steady_now_ns();
      const std::uint64_t late_ns = now - std::min(now, trainer.since_ns);
      std::uint64_t next_ns = watch_.after_ns;
      if (trainer.watched && trainer.since_ns != told_of_ns) {
        if (late_ns >= watch_.after_ns) {
          told_of_ns = trainer.since_ns;
          lock.unlock();
          tell(late_ns);
          lock.lock();
        } else {
          next_ns -= late_ns;
        }
      }
      changed_.wait_for(lock, std::chrono::nanoseconds(next_ns), [&] { return over_; });
    }
  }

  void tell(std::uint64_t late_ns) noexcept {
    try {
      const std::string text = "millrace: no batch for " + detail::seconds_text(late_ns) + "\n" + who_waits_() + "\n";
      if (watch_.tell) watch_.tell(text);
      else std::fputs(text.c_str(), stderr);
    } catch (...) {
      // A report that fails must not stop a run that is only late.
    }
  }

  const stall_watch watch_;
  const trainer_times* const trainer_;
  const std::function<std::string()> who_waits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;   // the last member: the thread uses the others
};

}}}  // namespace millrace::detail
