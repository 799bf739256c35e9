// Definitions for cache_plan.hpp.
#pragma once

#include <millrace/io/cache/cache_plan.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void cache_plan::expect(std::span<const std::string> names) {
  {
    const std::lock_guard lock(mutex_);
    lists_.emplace_back(names.begin(), names.end());
    for (const std::string& name : names) done_.erase(name);
    if (lists_.size() > max_lists) {
      // The bytes prefetched for readers that stopped are discarded with their lists.
      lists_.pop_front();
      ahead_.clear();
      ahead_bytes_ = 0;
    }
  }
  changed_.notify_all();
}

MILLRACE_INLINE std::optional<std::string> cache_plan::pop_next() {
  while (!lists_.empty()) {
    std::deque<std::string> list = std::move(lists_.front());
    lists_.pop_front();
    while (!list.empty()) {
      std::string name = std::move(list.front());
      list.pop_front();
      if (done_.contains(name) || ahead_.contains(name)) continue;
      if (!list.empty()) lists_.push_back(std::move(list));
      return name;
    }
  }
  return std::nullopt;
}

MILLRACE_INLINE std::optional<std::string> cache_plan::next() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopped_) return std::nullopt;
    if (ahead_bytes_ < limit_bytes_)
      if (auto name = pop_next()) {
        ahead_[*name] += 0;   // an entry, so that no other thread prefetches the file
        return name;
      }
    changed_.wait(lock);
  }
}

MILLRACE_INLINE bool cache_plan::wait_for_room(const std::string& name) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || ahead_bytes_ < limit_bytes_ || !ahead_.contains(name); });
  return !stopped_ && ahead_.contains(name);
}

MILLRACE_INLINE void cache_plan::add(const std::string& name, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto entry = ahead_.find(name);
  if (entry == ahead_.end()) return;
  entry->second += bytes;
  ahead_bytes_ += bytes;
}

MILLRACE_INLINE void cache_plan::closed(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    const auto entry = ahead_.find(name);
    if (entry != ahead_.end()) {
      ahead_bytes_ -= entry->second;
      ahead_.erase(entry);
    }
    if (!lists_.empty()) done_.insert(name);
    else done_.clear();
  }
  changed_.notify_all();
}

MILLRACE_INLINE void cache_plan::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

}}}  // namespace millrace::detail
