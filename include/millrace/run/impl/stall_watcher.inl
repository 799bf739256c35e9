// Definitions for stall_watcher.hpp.
#pragma once

#include <millrace/run/stall_watcher.hpp>

#include <millrace/base/clock.hpp>
#include <millrace/base/machine.hpp>
#include <millrace/measure/meters/read_meter.hpp>
#include <millrace/sync/start_thread.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE stall_watcher::stall_watcher(stall_options options, const trainer_times& trainer,
                                           std::function<std::string()> describe_waits, notice_outlet& notices)
    : after_ns_(static_cast<std::uint64_t>(options.least().count())),
      steps_(options.after.has_value()),
      trainer_(&trainer),
      describe_waits_(std::move(describe_waits)),
      notices_(&notices),
      thread_(start_thread([this] { watch(); })) {}

MILLRACE_RARE stall_watcher::~stall_watcher() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

MILLRACE_RARE void stall_watcher::watch() {
  name_this_thread("millrace-watch");
  std::uint64_t reported_ns = 0;
  std::unique_lock lock(mutex_);
  while (!over_) {
    const trainer_times::state trainer = trainer_->now();
    const std::uint64_t now = steady_now_ns();
    const std::uint64_t late_ns = now - std::min(now, trainer.since_ns);
    std::uint64_t next_ns = after_ns_;
    if (trainer.watched && (trainer.waits || steps_) && trainer.since_ns != reported_ns) {
      if (late_ns >= after_ns_) {
        reported_ns = trainer.since_ns;
        lock.unlock();
        report(trainer, late_ns);
        lock.lock();
      } else {
        next_ns -= late_ns;
      }
    }
    changed_.wait_for(lock, std::chrono::nanoseconds(next_ns), [&] { return over_; });
  }
}

MILLRACE_RARE void stall_watcher::report(const trainer_times::state& trainer, std::uint64_t late_ns) noexcept {
  try {
    notices_->deliver({.kind = notice_kind::stall,
                       .severity = trainer.waits ? notice_severity::warning : notice_severity::info,
                       .text = "no batch for " + seconds_text(late_ns) + "\n" + describe_waits_()});
  } catch (...) {
    // A report that fails must not stop a run that is only late.
  }
}

}}}   // namespace millrace::detail
