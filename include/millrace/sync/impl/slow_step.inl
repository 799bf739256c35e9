// Defines what slow_step.hpp declares.
#pragma once

#include <millrace/sync/slow_step.hpp>

#include <millrace/base/clock.hpp>
#include <millrace/base/machine.hpp>
#include <millrace/sync/started_thread.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE slow_step::slow_step(std::string what, options o)
    : what_(std::move(what)), options_(o), started_ns_(steady_now_ns()) {
  try {
    thread_ = started_thread([this] { watch(); });
  } catch (...) {
    // The step itself is not worse for it.
  }
}

MILLRACE_INLINE slow_step::~slow_step() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

MILLRACE_INLINE void slow_step::watch() {
  name_this_thread("millrace-watch");
  std::uint64_t done_before = 0;
  std::unique_lock lock(mutex_);
  for (std::uint64_t pause_ns = options_.after_ns; !over_; pause_ns *= options_.only_stalls ? 1 : 2) {
    if (changed_.wait_for(lock, std::chrono::nanoseconds(pause_ns), [&] { return over_; })) return;
    const std::uint64_t done = done_.load(std::memory_order_relaxed);
    if (options_.only_stalls && std::exchange(done_before, done) != done) continue;
    lock.unlock();
    report();
    lock.lock();
  }
}

MILLRACE_INLINE void slow_step::report() {
  try {
    const std::uint64_t now = steady_now_ns(), done = done_.load(std::memory_order_relaxed);
    std::string text = "before the first batch: " + what_;
    if (options_.items > 0) text += ", " + std::to_string(done) + " of " + std::to_string(options_.items) + " done";
    text += " after " + seconds_text(now - started_ns_);
    if (const std::string longest = meter_.longest(now); !longest.empty()) text += "; the longest now: " + longest;
    notices_.deliver({.kind = notice_kind::progress, .text = std::move(text)});
  } catch (...) {
    // A report that fails must not end the step.
  }
}

}}}  // namespace millrace::detail
