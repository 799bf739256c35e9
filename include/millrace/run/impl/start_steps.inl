// Definitions for start_steps.hpp.
#pragma once

#include <millrace/run/start_steps.hpp>

#include <millrace/base/clock.hpp>
#include <millrace/measure/meters/read_meter.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE void start_steps::enter(const char* name, bool reports_itself) {
  const std::uint64_t now = steady_now_ns();
  if (reports_itself) times_->leave(now);
  else times_->watch(now);
  const std::lock_guard lock(mutex_);
  name_ = name;
  since_ns_ = now;
}

MILLRACE_RARE void start_steps::over() {
  times_->leave(steady_now_ns());
  const std::lock_guard lock(mutex_);
  name_ = nullptr;
}

MILLRACE_RARE std::string start_steps::text() const {
  const std::lock_guard lock(mutex_);
  if (!name_) return {};
  const std::uint64_t now = steady_now_ns();
  std::string text = std::string("start: ") + name_ + ", for " + seconds_text(now - std::min(now, since_ns_));
  if (const std::string reads = reads_ ? reads_->waits(now) : std::string(); !reads.empty()) text += "; " + reads;
  return text;
}

MILLRACE_RARE start_steps::step::step(start_steps& of, const char* name, const read_meter* reads) : of_(&of) {
  of.enter(name);
  const std::lock_guard lock(of.mutex_);
  of.reads_ = reads;
}

MILLRACE_RARE start_steps::step::~step() {
  const std::lock_guard lock(of_->mutex_);
  of_->reads_ = nullptr;
}

}}}   // namespace millrace::detail
