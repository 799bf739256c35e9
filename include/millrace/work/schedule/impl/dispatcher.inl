// Definitions for dispatcher.hpp.
#pragma once

#include <millrace/work/schedule/dispatcher.hpp>

#include <millrace/base/clock.hpp>
#include <millrace/measure/meters/read_meter.hpp>

#include <algorithm>
#include <cstdio>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE dispatcher::dispatcher(dispatcher_work& work, options o)
    : work_(&work), options_(o), open_(o.max_workers), workers_(o.max_workers) {
  max_at_once_ = std::clamp<std::size_t>(o.group / (2 * o.max_workers), o.together, 32);
  max_at_once_ -= max_at_once_ % o.together;
  const std::uint64_t now = steady_now_ns();
  for (auto& s : workers_) {
    s.at_once = o.together;
    s.times = make_owner<worker_times>(now);
  }
}

MILLRACE_RARE void dispatcher::attach(worker_executor* e) noexcept {
  executor_ = e;
  if (!e) return;
  e->add_stage();
  cores_ = e->cores();
  if (cores_ > 0 && cores_ < workers_.size()) fit_due_ns_.store(0);
}

MILLRACE_INLINE void dispatcher::set_available(std::uint64_t tickets) {
  if (available_.exchange(tickets) <= awaited_.load()) awaited_available_.ring();
  wake_workers();
  report_tickets();
}

MILLRACE_INLINE void dispatcher::set_limit(std::uint64_t tickets) {
  // Several threads may free space concurrently, and the later call may have the smaller number.
  std::uint64_t now = limit_.load();
  while (now < tickets && !limit_.compare_exchange_weak(now, tickets)) {}
  wake_workers();
  report_tickets();
}

MILLRACE_INLINE void dispatcher::set_last() noexcept {
  last_known_.store(true);
  awaited_available_.ring();
}

MILLRACE_INLINE bool dispatcher::wait_for_available(std::uint64_t ticket) {
  awaited_.store(ticket);   // before available_ is read: either set_available() rings, or its tickets are visible
  awaited_available_.wait([&] { return available_.load() > ticket || last_known_.load(); });
  return available_.load() > ticket;
}

MILLRACE_INLINE bool dispatcher::advance() {
  std::uint64_t first;
  const std::size_t count = claim(options_.together, first);
  if (count == 0) return false;
  worker_times& times = *workers_[0].times;
  times.begin(steady_now_ns());
  times.at(first);
  work_->run(0, first, count);
  times.worked(steady_now_ns(), count, batch_of(first));
  work_->publish(first, count);
  times.leave(steady_now_ns(), missing_condition());
  return true;
}

MILLRACE_INLINE void dispatcher::set_active(std::size_t count) {
  if (!on_workers()) return;
  {
    const std::lock_guard lock(mutex_);
    fit_due_ns_.store(never);
    open_first(count, steady_now_ns());
  }
  wake_workers();
}

MILLRACE_INLINE void dispatcher::open_first(std::size_t count, std::uint64_t now) noexcept {
  count = std::clamp<std::size_t>(count, 1, workers_.size());
  for (std::size_t i = std::min(count, open_.load()); i < std::max(count, open_.load()); ++i)
    if (!workers_[i].is_running)
      workers_[i].times->wait_for(now, i < count ? missing_condition() : worker_times::waits_for::nothing);
  open_.store(count);
  all_running_.store(false);
  worker_called_.notify_all();   // wakes the workers that are now inactive
}

MILLRACE_INLINE void dispatcher::fit_to_cores(std::uint64_t now) noexcept {
  if (now < fit_due_ns_.load()) return;
  const std::lock_guard lock(mutex_);
  if (now < fit_due_ns_.load()) return;
  fit_due_ns_.store(now + fit_interval_ns);
  worker_times::measured_times all;
  for (const worker& s : workers_) all += s.times->measured();
  const double share = (all - fitted_).share_on_cores();
  if (share == 0) return;
  fitted_ = all;
  const double count = static_cast<double>(cores_) / share + 0.5;
  open_first(static_cast<std::size_t>(count), now);
}

MILLRACE_INLINE void dispatcher::stop() noexcept {
  stopped_.store(true);
  { const std::lock_guard lock(mutex_); }
  worker_called_.notify_all();
}

MILLRACE_INLINE void dispatcher::join() noexcept {
  std::unique_lock lock(mutex_);
  worker_left_.wait(lock, [&] { return running_ == 0 && submits_.load() == 0; });
}

MILLRACE_INLINE std::uint64_t dispatcher::busy_ns() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& s : workers_) sum += s.times->busy_ns();
  return sum;
}

MILLRACE_RARE stage_statistics dispatcher::statistics(std::string name, std::uint64_t now_ns) const {
  stage_statistics f{.name = std::move(name), .kind = stage_kind::work, .concurrency = open_.load()};
  f.on_workers = on_workers();
  for (const auto& s : workers_) s.times->add_to(f, now_ns);
  return f;
}

MILLRACE_RARE std::string dispatcher::waits(std::uint64_t now_ns) const {
  std::size_t working = 0, for_input = 0, for_space = 0;
  worker_times::state oldest{};
  for (const auto& s : workers_) {
    const worker_times::state one = s.times->now();
    if (one.works && (working++ == 0 || one.since_ns < oldest.since_ns)) oldest = one;
    for_input += !one.works && one.what == worker_times::waits_for::input;
    for_space += !one.works && one.what == worker_times::waits_for::space;
  }
  std::string text = std::to_string(working) + " of " + std::to_string(open_.load()) + " at work";
  if (working > 0) {
    char thread[24];
    std::snprintf(thread, sizeof thread, "0x%llx", static_cast<unsigned long long>(oldest.thread));
    text += ", the longest for " + seconds_text(now_ns - std::min(now_ns, oldest.since_ns)) + " at sample " +
            std::to_string(oldest.ticket);
    if (options_.group > 1) text += " (batch " + std::to_string(oldest.ticket / options_.group) + ")";
    text += std::string(", thread ") + thread;
  }
  if (for_input > 0) text += "; " + std::to_string(for_input) + " wait for input";
  if (for_space > 0) text += "; " + std::to_string(for_space) + " wait for space";
  return text;
}

MILLRACE_RARE void dispatcher::add_spans(timeline& t, const std::string& name, std::uint64_t start_ns) const {
  for (std::size_t i = 0; i < workers_.size(); ++i)
    detail::add_spans(t, name + " " + std::to_string(i), name.c_str(), workers_[i].times->spans(), start_ns);
}

MILLRACE_INLINE void dispatcher::run_as_worker(std::size_t index) noexcept {
  worker& s = workers_[index];
  std::uint64_t start = steady_now_ns(), now = start;
  std::uint64_t first;
  s.times->begin(start);
  while (!stopped_.load() && index < open_.load()) {
    const std::size_t count = claim(s.at_once, first);
    if (count == 0) {
      now = steady_now_ns();
      if (!sleep(index, now)) break;
      s.times->begin(start = now = steady_now_ns());
      continue;
    }
    s.times->at(first);
    work_->run(index, first, count);
    now = steady_now_ns();
    adapt(s, s.times->worked(now, count, batch_of(first)), count);
    work_->publish(first, count);
    // After its turn the worker queues again, so that other sessions and the user's own TBB work run, too.
    if (now - start > turn_ns) {
      now = steady_now_ns();
      s.times->end_of_stay(now);
      fit_to_cores(now);
      submits_.fetch_add(1);
      if (submit(index)) return;
      s.times->begin(now);
    }
  }
  leave(index, now);
  fit_to_cores(now);
  wake_workers();
}

MILLRACE_INLINE void dispatcher::share_with(space_listener& listener, std::size_t max_returned) {
  {
    const std::lock_guard lock(mutex_);
    returned_.reserve(max_returned);
  }
  shared_with_.store(&listener);
}

MILLRACE_INLINE std::uint64_t dispatcher::surplus(std::uint64_t head) const noexcept {
  const std::uint64_t end = std::min(available_.load(), limit_.load());
  const std::uint64_t reserved = head + 2 * options_.together * (executor_ ? open_.load() : 1);
  return end > reserved ? end - reserved : 0;
}

MILLRACE_INLINE std::size_t dispatcher::claim_surplus(std::size_t most, std::uint64_t from,
                                                      std::uint64_t& first) noexcept {
  std::uint64_t head = head_.load();
  for (;;) {
    const std::uint64_t to_group_end = options_.group - head % options_.group;
    const std::uint64_t count = std::min({static_cast<std::uint64_t>(most), surplus(head), to_group_end});
    if (count == 0 || head < from) return 0;
    if (head_.compare_exchange_weak(head, head + count)) {
      first = head;
      return static_cast<std::size_t>(count);
    }
  }
}

MILLRACE_INLINE void dispatcher::give_back(std::uint64_t first, std::size_t count) noexcept {
  {
    const std::lock_guard lock(mutex_);
    returned_.push_back({first, count});   // does not allocate
    returned_count_.fetch_add(count);
  }
  wake_workers();
}

/// Claims returned tickets, the lowest first, because their batch is delivered first.
MILLRACE_INLINE std::size_t dispatcher::claim_returned(std::size_t most, std::uint64_t& first) noexcept {
  const std::lock_guard lock(mutex_);
  const auto lowest = std::min_element(returned_.begin(), returned_.end(),
                                       [](const auto& a, const auto& b) { return a.first < b.first; });
  if (lowest == returned_.end()) return 0;
  const std::size_t count = std::min(most, lowest->count);
  first = lowest->first;
  lowest->first += count;
  lowest->count -= count;
  if (lowest->count == 0) {
    *lowest = returned_.back();
    returned_.pop_back();
  }
  returned_count_.fetch_sub(count);
  return count;
}

MILLRACE_INLINE std::size_t dispatcher::claim(std::size_t most, std::uint64_t& first) noexcept {
  if (returned_count_.load() != 0) [[unlikely]]
    if (const std::size_t count = claim_returned(most, first)) return count;
  std::uint64_t head = head_.load();
  for (;;) {
    const std::uint64_t to_group_end = options_.group - head % options_.group;
    const std::uint64_t count = std::min({static_cast<std::uint64_t>(most), claimable(head), to_group_end});
    if (count == 0) return 0;
    if (head_.compare_exchange_weak(head, head + count)) {
      first = head;
      return static_cast<std::size_t>(count);
    }
  }
}

MILLRACE_INLINE std::uint64_t dispatcher::batch_of(std::uint64_t ticket) const noexcept {
  return options_.group > 1 ? ticket / options_.group : timeline_span::no_batch;
}

MILLRACE_INLINE worker_times::waits_for dispatcher::missing_condition() const noexcept {
  return limit_.load() < available_.load() ? worker_times::waits_for::space : worker_times::waits_for::input;
}

MILLRACE_INLINE std::uint64_t dispatcher::claimable(std::uint64_t head) const noexcept {
  const std::uint64_t end = std::min(available_.load(), limit_.load());
  if (head >= end) return 0;
  const std::uint64_t left_in_group = options_.group - head % options_.group;
  if (end - head >= left_in_group) return end - head;
  return (end - head) / options_.together * options_.together;
}

MILLRACE_INLINE void dispatcher::adapt(worker& s, std::uint64_t spent_ns, std::size_t count) const noexcept {
  if (count < s.at_once) return;
  if (spent_ns < cheap_ns && s.at_once * 2 <= max_at_once_) s.at_once *= 2;
  else if (spent_ns > 2 * cheap_ns && s.at_once > options_.together) s.at_once /= 2;
}

MILLRACE_INLINE void dispatcher::wake_workers() {
  if (!executor_) return;
  while (!stopped_.load()) {
    const std::uint64_t tickets = claimable(head_.load()) + returned_count_.load();
    if (tickets == 0 || all_running_.load()) return;
    std::size_t index;
    {
      const std::lock_guard lock(mutex_);
      // Start no more workers than there are claims.
      const std::size_t at_work = running_ - asleep_;
      if (at_work >= (tickets + options_.together - 1) / options_.together && at_work > 0) return;
      if (asleep_ > 0) {
        --asleep_;
        ++called_;
        update_all_running();
        worker_called_.notify_one();
        continue;
      }
      index = 0;
      while (index < open_.load() && workers_[index].is_running) ++index;
      if (index == open_.load() || stopped_.load()) return;
      workers_[index].is_running = true;
      ++running_;
      submits_.fetch_add(1);
      update_all_running();   // repeated when an inactive worker leaves
    }
    if (!submit(index)) {
      leave(index, steady_now_ns());
      return;
    }
  }
}

MILLRACE_INLINE bool dispatcher::sleep(std::size_t index, std::uint64_t now) noexcept {
  if (!on_workers() || executor_->stages() > 1) return false;
  if (last_known_.load() && head_.load() >= available_.load()) return false;
  std::unique_lock lock(mutex_);
  workers_[index].times->leave(now, missing_condition());
  ++asleep_;
  all_running_.store(false);   // before the counters are read: wake_workers() sees this worker, or it sees the tickets
  const bool stays = worker_called_.wait_for(lock, std::chrono::nanoseconds(options_.sleep_ns), [&] {
    return called_ > 0 || has_claimable() || stopped_.load() || index >= open_.load();
  });
  if (called_ > 0) --called_;
  else --asleep_;
  update_all_running();
  return stays;
}

MILLRACE_INLINE void dispatcher::update_all_running() noexcept {
  all_running_.store(asleep_ == 0 && running_ >= open_.load());
}

MILLRACE_INLINE bool dispatcher::submit(std::size_t index) noexcept {
  bool queued = true;
  try {
    executor_->submit(shared_from_this(), index);
  } catch (...) {
    queued = false;   // out of memory: the next change of a counter causes a retry
  }
  {
    const std::lock_guard lock(mutex_);
    submits_.fetch_sub(1);
  }
  worker_left_.notify_all();
  return queued;
}

MILLRACE_INLINE void dispatcher::leave(std::size_t index, std::uint64_t now) noexcept {
  worker& s = workers_[index];
  s.times->end_of_stay(now);
  {
    const std::lock_guard lock(mutex_);
    s.times->leave(now, index < open_.load() ? missing_condition() : worker_times::waits_for::nothing);
    s.is_running = false;
    --running_;
    all_running_.store(false);
  }
  worker_left_.notify_all();
}

}}}   // namespace millrace::detail
