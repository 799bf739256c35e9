// Definitions for stall_watcher.hpp.
#pragma once

#include <millrace/run/stall_watcher.hpp>

#include <millrace/base/clock.hpp>
#include <millrace/base/machine.hpp>
#include <millrace/measure/meters/read_meter.hpp>
#include <millrace/sync/start_thread.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE void watched_start_steps::enter(const char* name, bool reports_itself) {
  const std::uint64_t now = steady_now_ns();
  if (reports_itself) times_->leave(now);
  else times_->watch(now);
  const std::lock_guard lock(mutex_);
  name_ = name;
  since_ns_ = now;
}

MILLRACE_RARE void watched_start_steps::over() {
  times_->leave(steady_now_ns());
  const std::lock_guard lock(mutex_);
  name_ = nullptr;
}

MILLRACE_RARE std::string watched_start_steps::text() const {
  const std::lock_guard lock(mutex_);
  if (!name_) return {};
  const std::uint64_t now = steady_now_ns();
  std::string text = std::string("start: ") + name_ + ", for " + seconds_text(now - std::min(now, since_ns_));
  if (const std::string reads = reads_ ? reads_->waits(now) : std::string(); !reads.empty()) text += "; " + reads;
  return text;
}

MILLRACE_RARE watched_start_steps::step::step(watched_start_steps& of, const char* name, const read_meter* reads)
    : of_(&of) {
  of.enter(name);
  const std::lock_guard lock(of.mutex_);
  of.reads_ = reads;
}

MILLRACE_RARE watched_start_steps::step::~step() {
  const std::lock_guard lock(of_->mutex_);
  of_->reads_ = nullptr;
}

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
