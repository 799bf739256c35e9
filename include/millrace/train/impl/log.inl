// Definitions for log.hpp.
#pragma once

#include <millrace/train/log.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/sync/start_thread.hpp>

#include <algorithm>
#include <csignal>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE std::optional<double> row::find(std::string_view name) const noexcept {
  for (const auto& q : values)
    if (q.name == name) return q.value;
  return {};
}

MILLRACE_INLINE void row::clean_text() {
  for (auto& q : values) detail::clean_utf8(q.name);
  for (auto& i : images) detail::clean_utf8(i.name);
  detail::clean_utf8(message);
}

MILLRACE_INLINE std::size_t row::held_bytes() const noexcept {
  std::size_t sum = sizeof(row) + message.size() + values.capacity() * sizeof(quantity);
  for (const auto& q : values) sum += q.name.size();
  for (const auto& i : images) sum += sizeof i + i.name.size() + i.file.size();
  return sum;
}

namespace detail {

MILLRACE_INLINE log_state::log_state(log_options options, std::vector<owner<sink>> sinks)
    : options_(std::move(options)), notices_(options_.notice), sinks_(std::move(sinks)), reported_(sinks_.size()) {}

MILLRACE_INLINE bool log_state::put(row& r, bool may_drop) {
  const std::int64_t now_ns = stamp(r);
  r.clean_text();
  const std::size_t size = r.held_bytes();
  {
    const std::lock_guard lock(mutex_);
    if (closing_ || size > options_.queue_bytes || (!may_drop && !can_accept(size))) {
      ++counts_.refused;
      return false;
    }
    while (!can_accept(size)) drop_first();
    if (!r.message.empty() && r.values.empty()) r.step = std::max(r.step, last_step_);
    last_step_ = std::max(last_step_, r.step);
    const std::uint64_t step = r.step;
    waiting_.push_back(entry{std::move(r), now_ns, size});
    for (std::size_t i = waiting_.size() - 1; i > 0 && step < waiting_[i - 1].r.step; --i)
      std::swap(waiting_[i - 1], waiting_[i]);
    waiting_bytes_ += size;
    ++counts_.accepted;
  }
  wake_writer_.notify_one();
  return true;
}

MILLRACE_INLINE bool log_state::drain(bool then_close) {
  std::unique_lock lock(mutex_);
  if (then_close) closing_ = true;
  ++draining_;
  wake_writer_.notify_one();
  const bool done = progress_.wait_for(lock, options_.drain,
                                       [&] { return finished_ || (!then_close && waiting_.empty() && !writing_); });
  --draining_;
  if (!done && then_close)
    while (!waiting_.empty()) drop_first();
  return done;
}

MILLRACE_INLINE log_counts log_state::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

MILLRACE_INLINE void log_state::run() noexcept {
  std::unique_lock lock(mutex_);
  while (!(closing_ && waiting_.empty())) {
    if (ready(lock)) {
      write_first(lock);
    } else {
      wake_writer_.wait_for(lock, tick_every);
    }
    tick(lock);
  }
  lock.unlock();
  for (std::size_t i = 0; i < sinks_.size(); ++i) guarded(i, [&] { sinks_[i]->close(); });
  lock.lock();
  finished_ = true;
  progress_.notify_all();
}

MILLRACE_INLINE std::int64_t log_state::stamp(row& r) const {
  const instant now = options_.now();
  if (r.unix_ns == 0) r.unix_ns = now.unix_ns;
  return now.steady_ns;
}

MILLRACE_INLINE bool log_state::can_accept(std::size_t size) const noexcept {
  return waiting_.empty() || (waiting_.size() < options_.queue_rows && waiting_bytes_ + size <= options_.queue_bytes);
}

MILLRACE_INLINE void log_state::drop_first() {
  waiting_bytes_ -= waiting_.front().size_bytes;
  waiting_.pop_front();
  ++counts_.dropped;
}

MILLRACE_INLINE bool log_state::ready(std::unique_lock<std::mutex>&) const {
  if (waiting_.empty()) return false;
  if (closing_ || draining_ > 0 || options_.hold.count() <= 0) return true;
  const std::int64_t aged_ns = options_.now().steady_ns - options_.hold.count();
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const entry& e) { return e.arrived_ns <= aged_ns; });
}

MILLRACE_INLINE void log_state::write_first(std::unique_lock<std::mutex>& lock) {
  const row r = std::move(waiting_.front().r);
  waiting_bytes_ -= waiting_.front().size_bytes;
  waiting_.pop_front();
  if (r.step < written_step_) ++counts_.late;
  written_step_ = std::max(written_step_, r.step);
  writing_ = true;
  lock.unlock();
  bool is_written = true;
  for (std::size_t i = 0; i < sinks_.size(); ++i) is_written = guarded(i, [&] { sinks_[i]->write(r); }) && is_written;
  lock.lock();
  writing_ = false;
  ++(is_written ? counts_.written : counts_.failed);
  if (draining_ > 0 && waiting_.empty()) progress_.notify_all();
}

MILLRACE_INLINE void log_state::tick(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const instant now = options_.now();
  for (std::size_t i = 0; i < sinks_.size(); ++i) guarded(i, [&] { sinks_[i]->tick(now); });
  lock.lock();
}

MILLRACE_INLINE void log_state::report(std::size_t index, const char* what) noexcept {
  if (reported_[index]) return;
  reported_[index] = true;
  try {
    notices_.deliver(
        {.kind = notice_kind::log,
         .severity = notice_severity::warning,
         .text = "the log's " + std::string(sinks_[index]->name()) +
                 " sink failed (it is retried; later failures are not reported): " + printable_text(what)});
  } catch (...) {   // out of memory for the text of a notice
    print_notice("a log's sink failed (it is retried; later failures are not reported): ", sinks_[index]->name());
  }
}

MILLRACE_INLINE log_state::~log_state() = default;

}   // namespace detail

MILLRACE_INLINE bool log::message(std::string text) {
  row r;
  r.message = std::move(text);
  return push(std::move(r));
}

MILLRACE_INLINE bool log::close() noexcept {
  if (!writer_.joinable()) return true;
  const bool done = state_->drain(true);
  if (done) writer_.join();
  else writer_.detach();
  return done;
}

MILLRACE_INLINE void log::start() {
  // Signals belong to the user's threads. A closed pipe must be an error of the sink, and must not end the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    writer_ = detail::start_thread([state = state_] { state->run(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}}   // namespace millrace
