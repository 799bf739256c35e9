// Reports the wait of each stage if no batch arrives for at least stall_options::least(). A stall_watcher never ends a
// run.
//
//   mr::detail::stall_watcher watcher({.after = std::chrono::seconds(30)}, times, [&] { return waits(); },
//                                    notices);
//
// Each stall is reported once. After the next batch, the watcher can report another stall. The time between two epochs
// is not a stall, nor is the time after the end of the run.
// Errors: none. Threads: the constructor starts a thread, and the destructor joins it. If the thread is delivering a
// notice, the destructor waits for the end of the delivery.
#pragma once

#include <millrace/measure/meters/trainer_times.hpp>
#include <millrace/run/session_options.hpp>
#include <millrace/sync/notice_outlet.hpp>

#include <condition_variable>   // also for the durations of std::chrono
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Records the steps of a session's start, so that the report of a stall before the first batch can name the current
// step.
//
// Errors: none. Threads: the trainer enters steps; any thread may call text().

class read_meter;

/// The current step of a session that has no batch yet.
class watched_start_steps {
 public:
  explicit watched_start_steps(trainer_times& times) noexcept : times_(&times) {}

  /// Begins a step, which ends when the next step begins. `name` is a literal. If `reports_itself` is true, the step
  /// reports its own stalls, and the session reports none.
  void enter(const char* name, bool reports_itself = false);
  /// Called when the session has started.
  void over();
  /// Returns the current step, its duration, and its current reads.
  std::string text() const;

  /// A step that lasts as long as this object. `reads` counts the reads of the step; null if the step does not read.
  class step {
   public:
    step(watched_start_steps& of, const char* name, const read_meter* reads);
    step(const step&) = delete;
    step& operator=(const step&) = delete;
    ~step();

   private:
    watched_start_steps* const of_;
  };

 private:
  trainer_times* const times_;
  mutable std::mutex mutex_;     // guards all members below
  const char* name_ = nullptr;   // null before the first step and after over()
  std::uint64_t since_ns_ = 0;
  const read_meter* reads_ = nullptr;
};

/// Reports stalls from a separate thread.
class stall_watcher {
 public:
  /// Starts the thread. `trainer` must outlive the watcher; `describe_waits` is called on the watcher's thread.
  stall_watcher(stall_options options, const trainer_times& trainer, std::function<std::string()> describe_waits,
                notice_outlet& notices);
  stall_watcher(const stall_watcher&) = delete;
  stall_watcher& operator=(const stall_watcher&) = delete;
  ~stall_watcher();

 private:
  void watch();
  void report(const trainer_times::state& trainer, std::uint64_t late_ns) noexcept;

  const std::uint64_t after_ns_;
  const bool steps_;   // whether long training steps are reported too
  const trainer_times* const trainer_;
  const std::function<std::string()> describe_waits_;
  notice_outlet* const notices_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;   // the last member, because the thread uses the others
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/stall_watcher.inl>
#endif
