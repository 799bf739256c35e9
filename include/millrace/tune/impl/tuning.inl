// Definitions for tuning.hpp.
#pragma once

#include <millrace/tune/tuning.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/format.hpp>
#include <millrace/base/machine.hpp>
#include <millrace/item/world.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE double tuning_window::rate_of_workers(std::size_t n) const noexcept {
  return work_s > 0 ? static_cast<double>(n) / work_s : without_limit;
}

MILLRACE_INLINE double tuning_window::rate_of_reads(std::size_t n) const noexcept {
  const double q = contention.value_or(0), count = static_cast<double>(n);
  const double alone_s = reading_s / (1 + q * (outstanding - 1));
  const double one_s = alone_s * (1 + q * (count - 1)) + unpacking_s;
  return reads && one_s > 0 ? count / one_s : without_limit;
}

MILLRACE_INLINE tuning_window tuning_window_of(const flow_statistics& f) {
  tuning_window w;
  w.data_wait = f.data_wait_share();
  w.rate = f.samples_per_s();
  for (const stage_statistics& s : f.stages) {
    const double busy_s = 1e-9 * static_cast<double>(s.busy_ns), samples = s.samples();
    const double one_s = samples > 0 ? busy_s / samples : 0;
    const auto limit = [&](double rate) {
      if (rate >= w.fixed_rate) return;
      w.fixed_rate = rate;
      w.fixed_name = s.name;
    };
    switch (s.kind) {
      case stage_kind::read:
        w.reading_s = one_s;
        w.read_rate = f.wall_ns > 0 ? samples / f.wall_s() : 0;
        w.reads = 4 * samples >= static_cast<double>(f.samples);
        w.open.reads = s.concurrency;
        break;
      case stage_kind::unpack: w.unpacking_s = one_s; break;
      case stage_kind::work:
        if (s.on_workers) {
          w.work_s = std::max(w.work_s, one_s);
          w.all_work_s += one_s;
          w.open.workers = s.concurrency;
        } else if (one_s > 0) {
          limit(static_cast<double>(s.concurrency) / one_s);
        }
        break;
      case stage_kind::copy:
        if (one_s > 0) limit(1 / one_s);
        break;
      case stage_kind::step: {
        const double step_s = f.device_gap_ns ? f.wall_s() - 1e-9 * static_cast<double>(*f.device_gap_ns) : busy_s;
        if (step_s > 0 && samples > 0) w.step_rate = samples / step_s;
        break;
      }
    }
  }
  // levels.mean_outstanding() is too low, because the last level also counts all larger numbers of reads. For the same
  // reason, the levels say little about contention if many reads ended in the last level.
  const auto& top = f.reads_at_once.at(read_levels::max_level);
  const stage_statistics* const read = f.find(stage_kind::read);
  if (read && f.reads_at_once.busy_ns() > 0)
    w.outstanding = std::max(1.0, static_cast<double>(read->busy_ns) / static_cast<double>(f.reads_at_once.busy_ns()));
  if (read && 2 * top.reads < read->service_ns.count()) w.contention = f.reads_at_once.contention();
  return w;
}

MILLRACE_INLINE std::string tuning_decision::text() const {
  const auto change = [](std::size_t a, std::size_t b) {
    return (a == b ? "" : std::to_string(a) + " -> ") + std::to_string(b);
  };
  return "tuning after " + std::to_string(batches) + " batches: " + change(from.workers, to.workers) + " workers, " +
         change(from.reads, to.reads) + " reads; data wait " + percent(data_wait) + ": " + why;
}

MILLRACE_INLINE std::optional<tuning_decision> tuning_search::evaluate(tuning_window w) {
  learn_contention(w);
  waits_in_turn_ = w.data_wait >= options_.data_wait ? waits_in_turn_ + 1 : 0;
  if (settled_ && !restarts(w)) return {};
  if (reverted_useless_move(w)) return decide(w, before_.open, "the increase had no effect");
  const aim a = aim_for(w);
  if (waits_in_turn_ == 0) return decide(w, reduced(a), "enough: " + a.text);
  if (a.out_of_reach) return decide(w, nearer(a.least), a.text);
  const concurrency_counts more = within(
      {std::max(open_.workers, a.least.workers), std::max(open_.reads, a.least.reads)});
  if (more != open_) return decide(w, more, a.text);
  if (waits_in_turn_ < 2) return {};
  return decide(w, one_more(w), "for an unknown reason: " + a.text);
}

MILLRACE_INLINE void tuning_search::past::move(std::size_t from, std::size_t to) noexcept {
  if (to > from) too_few = from;
  rose_again = rose_again || (to > from && fell);
  fell = fell || to < from;
}

MILLRACE_INLINE tuning_search::aim tuning_search::aim_for(const tuning_window& w) const {
  const std::size_t knee = knee_of(w);
  const double all_workers = w.all_work_s > 0 ? static_cast<double>(options_.max.workers) / w.all_work_s
                                              : tuning_window::without_limit;
  const double all_reads = w.rate_of_reads(knee);
  aim a;
  const double within_reach = std::min({w.fixed_rate, all_workers, all_reads});
  const double rate = std::min(w.step_rate, within_reach);
  a.out_of_reach = within_reach < 0.98 * w.step_rate;
  if (!a.out_of_reach) a.text = "the step";
  else if (within_reach == w.fixed_rate) a.text = w.fixed_name;
  else if (within_reach == all_workers) a.text = "all " + std::to_string(options_.max.workers) + " workers";
  else a.text = "reading";
  const double needed = rate / busy_share;
  a.least = {least(options_.max.workers, needed, [&](std::size_t n) { return w.rate_of_workers(n); }),
             w.reads ? least(knee, needed, [&](std::size_t n) { return w.rate_of_reads(n); }) : open_.reads};
  a.tight = 0.97 * std::min(w.rate_of_workers(open_.workers), w.rate_of_reads(open_.reads)) < rate;
  a.text += a.out_of_reach ? " is the limit, and needs " : " needs ";
  a.text += three_digits(rate * w.work_s) + " workers and " +
            (w.reads ? three_digits(rate * (w.reading_s + w.unpacking_s)) : "so far no") + " reads";
  return a;
}

MILLRACE_INLINE std::size_t tuning_search::knee_of(const tuning_window& w) const {
  std::size_t n = 1;
  if (!w.contention) return std::min(options_.max.reads, 4 * open_.reads);
  while (n < options_.max.reads && w.rate_of_reads(2 * n) >= gain_of_twice * w.rate_of_reads(n)) ++n;
  return n;
}

MILLRACE_INLINE concurrency_counts tuning_search::within(const concurrency_counts& target) const {
  return {std::clamp<std::size_t>(target.workers, 1, cap_.workers),
          std::clamp<std::size_t>(target.reads, 1, cap_.reads)};
}

MILLRACE_INLINE std::size_t tuning_search::lowered(std::size_t open, std::size_t target, const past& p) {
  target = std::max({target, p.too_few + 1, open / 4});
  return !p.rose_again && target + std::max<std::size_t>(1, open / 8) <= open ? target : open;
}

MILLRACE_INLINE concurrency_counts tuning_search::nearer(const concurrency_counts& target) const {
  const auto one = [](std::size_t open, std::size_t to, const past& p) {
    if (to > open) return to >= open + open / 8 ? to : open;
    return lowered(open, to, p);
  };
  return within({one(open_.workers, target.workers, workers_), one(open_.reads, target.reads, reads_)});
}

MILLRACE_INLINE concurrency_counts tuning_search::reduced(const aim& a) const {
  concurrency_counts to = open_;
  if (moves_ < 3) to = {lowered(open_.workers, a.least.workers, workers_), lowered(open_.reads, a.least.reads, reads_)};
  if (a.tight && !a.out_of_reach) to = {std::max(to.workers, a.least.workers), std::max(to.reads, a.least.reads)};
  return within(to);
}

MILLRACE_INLINE concurrency_counts tuning_search::one_more(const tuning_window& w) const {
  const double workers = w.rate_of_workers(open_.workers), reads = w.rate_of_reads(open_.reads);
  if (std::min(workers, reads) > 1.5 * w.step_rate) return open_;
  if (workers < reads) return within({open_.workers + 1, open_.reads});
  return within({open_.workers, open_.reads + 1});
}

MILLRACE_INLINE void tuning_search::learn_contention(tuning_window& w) {
  if (!w.reads) return;
  const read_sample now{w.open.reads, w.reading_s, w.outstanding};
  if (now.open != here_.open) before_here_ = here_;
  here_ = now;
  const double more = now.outstanding - before_here_.outstanding;
  if (before_here_.open == 0 || std::abs(more) < std::max(0.5, now.outstanding / 8)) return;
  const double slope = (now.reading_s - before_here_.reading_s) / more;
  const double alone_s = now.reading_s - slope * (now.outstanding - 1);
  const double estimate = alone_s > 0 ? std::clamp(slope / alone_s, 0.0, 1.0) : 1.0;
  w.contention = std::max(w.contention.value_or(0), estimate);   // the estimate of one window tends to be too low
}

MILLRACE_INLINE bool tuning_search::reverted_useless_move(const tuning_window& w) {
  const double expected = std::exchange(before_.expected_gain, 0);
  if (waits_in_turn_ == 0 || !(expected >= 0.1)) return false;
  const bool workers = open_.workers > before_.open.workers, reads = open_.reads > before_.open.reads;
  // Compares shares of time, because steps are not equally long in two windows.
  const double gain = std::max((1 - w.data_wait) / (1 - before_.data_wait),
                               reads ? w.read_rate / before_.read_rate : 0) -
                      1;
  if (gain > std::min(expected / 4, 0.1)) return false;
  if (workers) cap_.workers = before_.open.workers;
  if (reads) cap_.reads = before_.open.reads;
  return true;
}

MILLRACE_INLINE bool tuning_search::restarts(const tuning_window& w) {
  const auto other = [](double now, double then) { return std::abs(now - then) > then / 4; };
  const bool changed = other(w.work_s, settled_at_.work_s) || other(1 / w.step_rate, 1 / settled_at_.step_rate) ||
                       (w.reads && other(w.reading_s + w.unpacking_s, settled_at_.reading_s + settled_at_.unpacking_s));
  const concurrency_counts target = aim_for(w).least;
  const auto less = [](std::size_t open, std::size_t now) { return now + std::max<std::size_t>(1, open / 4) <= open; };
  const bool matters = less(open_.workers, target.workers) || less(open_.reads, target.reads) ||
                       (waits_in_turn_ > 0 && within(target) != open_);
  changed_in_turn_ = changed && matters ? changed_in_turn_ + 1 : 0;
  if (changed_in_turn_ >= 3) {
    workers_ = reads_ = {};
    cap_ = options_.max;
  } else if (out_of_reach_ || waits_in_turn_ < 3) {
    return false;
  }
  settled_ = workers_.fell = workers_.rose_again = reads_.fell = reads_.rose_again = false;
  moves_ = 0;
  before_ = {};
  return true;
}

MILLRACE_INLINE std::optional<tuning_decision> tuning_search::decide(const tuning_window& w, concurrency_counts to,
                                                                     std::string why) {
  tuning_decision d{.moves = moves_, .from = open_, .to = to, .data_wait = w.data_wait, .why = std::move(why)};
  if (to == open_ || moves_ == max_moves) {
    d.to = open_;
    settle(w);
  } else {
    d.moves = ++moves_;
    const double was = std::min({w.rate_of_workers(open_.workers), w.rate_of_reads(open_.reads), w.step_rate});
    const double then = std::min({w.rate_of_workers(to.workers), w.rate_of_reads(to.reads), w.step_rate});
    before_ = {open_, w.data_wait, w.read_rate, waits_in_turn_ > 0 ? then / was - 1 : 0};
    workers_.move(open_.workers, to.workers);
    reads_.move(open_.reads, to.reads);
    open_ = to;
    waits_in_turn_ = 0;
  }
  d.settled = settled_;
  return d;
}

MILLRACE_INLINE void tuning_search::settle(const tuning_window& w) {
  settled_ = true;
  settled_at_ = w;
  out_of_reach_ = waits_in_turn_ > 0;
  changed_in_turn_ = 0;
  waits_in_turn_ = 0;
}

}}}   // namespace millrace::detail

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
