// Definitions for tuning.hpp.
#pragma once

#include <millrace/tune/tuning.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/format.hpp>
#include <millrace/base/machine.hpp>
#include <millrace/item/world.hpp>

#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE window_tuner::window_tuner(tuning_options o, const concurrency_limits& of)
    : options_(std::move(o)),
      notices_(of.notices),
      search_({.open = of.open, .max = of.max, .data_wait = options_.data_wait}) {}

MILLRACE_INLINE concurrency_counts window_tuner::evaluate(const flow_statistics& now) {
  if (now.batches < 1 + full_slots(now)) {
    due_at_ = 1 + full_slots(now);   // at this batch, the batch rings are full
  } else if (!begun_) {
    begin(now);
  } else if (const flow_statistics window = now - before_; window.wall_ns < least_window_ns) {
    due_at_ = now.batches + window.batches;   // batches are so short that an evaluation costs more
  } else {
    const concurrency_counts was = search_.open();
    if (std::optional<tuning_decision> d = search_.evaluate(tuning_window_of(window))) {
      d->batches = now.batches;
      if (notices_) notices_->deliver({.kind = notice_kind::tuning, .text = d->text()});
    }
    if (search_.open() == was) {
      begin(now);
    } else {
      begun_ = false;
      due_at_ = now.batches + full_slots(now);   // at this batch, all batches of the old numbers have been delivered
    }
  }
  return search_.open();
}

MILLRACE_INLINE std::uint64_t window_tuner::full_slots(const flow_statistics& f) {
  return std::max<std::uint64_t>(4, f.host_slots + f.device_slots);
}

MILLRACE_INLINE void window_tuner::begin(const flow_statistics& now) {
  begun_ = true;
  before_ = now;
  due_at_ = now.batches + window_batches;
}

MILLRACE_INLINE window_tuning::window_tuning(tuning_options o) : options_(std::move(o)) {
  const auto refuse = [](const std::string& option, const std::string& value, const std::string& minimum) {
    throw setup_error("tuning_options::" + option + " is " + value + ", expected " + minimum,
                      "Set a larger value, or omit the option");
  };
  if (options_.max_workers == 0) refuse("max_workers", "0", "at least 1");
  if (options_.max_reads == 0) refuse("max_reads", "0", "at least 1");
  if (!(options_.data_wait > 0)) refuse("data_wait", three_digits(options_.data_wait), "a share above 0");
}

MILLRACE_INLINE concurrency_counts window_tuning::max(const concurrency_counts& requested) const {
  const std::size_t workers = options_.max_workers ? *options_.max_workers
                                                   : share_of_machine(processes_of_machine({})).cores;
  return {std::max(requested.workers, workers), std::max(requested.reads, options_.max_reads)};
}

MILLRACE_INLINE owner<autotuner> window_tuning::start(const concurrency_limits& of_session) const {
  return make_owner<window_tuner>(options_, of_session);
}

}   // namespace detail

MILLRACE_INLINE std::shared_ptr<const tuning_rule> tuning(tuning_options o) {
  return std::make_shared<detail::window_tuning>(std::move(o));
}

}}   // namespace millrace
