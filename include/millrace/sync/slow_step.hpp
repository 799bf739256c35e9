// Reports slow steps, such as listing files or building indexes. These steps run before a session watches for stalls.
//
//   mr::detail::slow_step step("finds files in the storage", {.items = names.size()});
//   {
//     const mr::detail::slow_step::item here(step, names[i]);      // on any thread
//     stamps[i] = at->find(names[i]);
//   }
//
// If a step is not complete after `after_ns`, a notice reports the number of completed items, and the running item that
// began first. More notices follow at increasing intervals; with `only_stalls`, at equal intervals.
// Errors: if the watching thread cannot be started, nothing is reported. Threads: runs a separate thread until
// destruction.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/base/machine.hpp>
#include <millrace/measure/meters/read_meter.hpp>
#include <millrace/sync/notice_outlet.hpp>
#include <millrace/sync/start_thread.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Watches one step.
class slow_step {
 public:
  struct options {
    std::size_t items = 0;              ///< number of items of the step; 0 if unknown
    bool only_stalls = false;           ///< whether to report only if no item was completed since the last check
    notice_outlet* notices = nullptr;   ///< outlet of the caller; if null, notices are printed to stderr
    std::uint64_t after_ns = 10'000'000'000;
  };
  MILLRACE_RARE explicit slow_step(std::string step, options o)
      : step_(std::move(step)), options_(o), started_ns_(steady_now_ns()) {
    try {
      thread_ = start_thread([this] { watch(); });
    } catch (...) {
      // The step itself continues without reports.
    }
  }
  slow_step(const slow_step&) = delete;
  slow_step& operator=(const slow_step&) = delete;
  MILLRACE_RARE ~slow_step() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  /// Marks an item of the step as running, from construction to destruction.
  class item {
   public:
    /// `name` must remain valid as long as the item.
    item(slow_step& of, std::string_view name) noexcept : of_(&of), running_(of.meter_, name) {}
    ~item() { of_->done_.fetch_add(1, std::memory_order_relaxed); }

   private:
    slow_step* const of_;
    read_meter::running running_;
  };

 private:
  void watch() {
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
  MILLRACE_RARE void report() {
    try {
      const std::uint64_t now = steady_now_ns(), done = done_.load(std::memory_order_relaxed);
      std::string text = "before the first batch: " + step_;
      if (options_.items > 0) text += ", " + std::to_string(done) + " of " + std::to_string(options_.items) + " done";
      text += " after " + seconds_text(now - started_ns_);
      if (const std::string longest = meter_.longest(now); !longest.empty()) text += "; the longest now: " + longest;
      if (!options_.notices) return print_notice(text);
      notice n{.kind = notice_kind::progress, .text = std::move(text)};
      if (options_.only_stalls) n.kind = notice_kind::stall, n.severity = notice_severity::warning;
      options_.notices->deliver(n);
    } catch (...) {
      // A report that fails must not end the step.
    }
  }

  const std::string step_;
  const options options_;
  const std::uint64_t started_ns_;
  read_meter meter_;
  std::atomic<std::uint64_t> done_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;   // the last member, because the thread uses the others
};

}}}   // namespace millrace::detail
