// Shared by the tests of executors: a user's pool, and flows whose batches must not depend on the executor.
#pragma once

#include "quiet_sessions.hpp"

#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/expand.hpp>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

struct random_row {
  std::int64_t number;
  double random_value;
};
using drawing = std::function<random_row(int, millrace::rng&)>;
inline const drawing draw = [](int n, millrace::rng& random) -> random_row { return {n, random.uniform()}; };

/// One stage that workers run.
inline auto plain_flow(drawing f = draw, int count = 2'000) {
  return millrace::from(numbers(count), {.seed = 3}) | millrace::shuffle({.window = 64}) |
         millrace::map(std::move(f)) | millrace::batch<&random_row::number, &random_row::random_value>({.size = 16});
}
/// Two stages on workers, and one with its own thread between them.
inline auto staged_flow(drawing f = draw, int count = 2'000, std::function<void()> filtering = [] {}) {
  auto next = [n = 0, count]() mutable { return n == count ? (n = 0, std::nullopt) : std::optional(n++); };
  return millrace::from(std::move(next), {.seed = 3}) | millrace::filter([act = std::move(filtering)](int n) {
           act();
           return n % 3 != 0;
         }) | millrace::shuffle({.window = 64}) |
         millrace::map(std::move(f)) | millrace::batch<&random_row::number, &random_row::random_value>({.size = 16});
}

/// The rows of a run in their order, and its digest.
struct rows_of_run {
  std::vector<std::pair<std::int64_t, double>> rows{};
  std::uint64_t digest = 0;
  friend bool operator==(const rows_of_run&, const rows_of_run&) = default;
};
inline rows_of_run rest_of(auto& run) {
  rows_of_run all;
  for (auto& [number, random_value] : run)
    for (std::size_t i = 0; i < number.shape[0]; ++i) all.rows.emplace_back(number.host()[i], random_value.host()[i]);
  all.digest = run.stats().digest;
  return all;
}
inline rows_of_run run_of(auto flow, millrace::session_options options) {
  millrace::session run{std::move(flow), std::move(options)};
  return rest_of(run);
}

inline millrace::session_options on(std::shared_ptr<millrace::executor> executor,
                                    std::optional<unsigned> threads = {}) {
  return {.threads = threads, .executor = std::move(executor), .notice = millrace::quiet};
}

/// A pool of threads, like a user's.
class user_pool final : public millrace::executor {
 public:
  enum class order { oldest, newest, any, late };

  explicit user_pool(unsigned threads, order next = order::oldest) : next_(next) {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
    const std::lock_guard lock(mutex_);
    for (const std::thread& t : threads_) ids_.insert(t.get_id());
  }
  ~user_pool() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  void submit(std::function<void()> task) override {
    {
      const std::lock_guard lock(mutex_);
      ++submitted_;
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }
  unsigned concurrency() const noexcept override { return static_cast<unsigned>(threads_.size()); }

  std::size_t submitted() {
    const std::lock_guard lock(mutex_);
    return submitted_;
  }
  bool has_this_thread() {
    const std::lock_guard lock(mutex_);
    return ids_.contains(std::this_thread::get_id());
  }

 private:
  void work() {
    for (;;) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
        if (stopping_) return;   // queued tasks are dropped
        const std::size_t at = next_ == order::newest ? tasks_.size() - 1
                               : next_ == order::any  ? submitted_ * 7 % tasks_.size()
                                                      : 0;
        task = std::move(tasks_[at]);
        tasks_.erase(tasks_.begin() + static_cast<std::ptrdiff_t>(at));
      }
      for (int i = 0; next_ == order::late && i < 50; ++i) std::this_thread::yield();
      task();
    }
  }

  const order next_;
  std::mutex mutex_;   // guards all members below except the threads
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::set<std::thread::id> ids_;
  std::size_t submitted_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};
