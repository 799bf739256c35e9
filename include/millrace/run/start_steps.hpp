// Records the steps of a session's start, so that the report of a stall before the first batch can name the current
// step.
//
//   mr::detail::start_steps start(times);               // records the waits of the trainer in trainer_times
//   start.enter("allocates slots");
//   {
//     const mr::detail::start_steps::step here(start, "plans the order", &meter);
//   }
//   start.text();     // "start: plans the order, for 31.2 s; 1 read in progress, ..."; empty after the start
//   start.over();
//
// Errors: none. Threads: the trainer enters steps; any thread may call text().
#pragma once

#include <millrace/measure/meters/trainer_times.hpp>

#include <cstdint>
#include <mutex>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class read_meter;

/// The current step of a session that has no batch yet.
class start_steps {
 public:
  explicit start_steps(trainer_times& times) noexcept : times_(&times) {}

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
    step(start_steps& of, const char* name, const read_meter* reads);
    step(const step&) = delete;
    step& operator=(const step&) = delete;
    ~step();

   private:
    start_steps* const of_;
  };

 private:
  trainer_times* const times_;
  mutable std::mutex mutex_;     // guards all members below
  const char* name_ = nullptr;   // null between steps
  std::uint64_t since_ns_ = 0;
  const read_meter* reads_ = nullptr;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/start_steps.inl>
#endif
