// Definitions for event_counts.hpp.
#pragma once

#include <millrace/measure/values/event_counts.hpp>

#include <cstring>
#include <new>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE void event_counts::count(const char* what, std::uint64_t times) noexcept {
  for (auto& e : entries_) {
    const char* name = e.what.load();
    if (!name && e.what.compare_exchange_strong(name, what)) name = what;
    if (name == what || std::strcmp(name, what) == 0) {
      e.times.fetch_add(times, std::memory_order_relaxed);
      return;
    }
  }
  other_.fetch_add(times, std::memory_order_relaxed);
}

MILLRACE_INLINE void event_counts::post(notice&& n, unsigned most) noexcept {
  if (posted_[static_cast<std::size_t>(n.kind)].fetch_add(1, std::memory_order_relaxed) >= most) return;
  try {
    const std::lock_guard lock(mutex_);
    notices_.push_back(std::move(n));
    any_posted_.store(true);
  } catch (const std::bad_alloc&) {
    // If memory is exhausted, the notice is dropped, but its event has been counted.
  }
}

MILLRACE_INLINE std::vector<notice> event_counts::take_posted() noexcept {
  if (!any_posted_.load(std::memory_order_relaxed)) return {};
  const std::lock_guard lock(mutex_);
  any_posted_.store(false);
  return std::exchange(notices_, {});
}

MILLRACE_INLINE std::vector<event_count> event_counts::counts() const {
  std::vector<event_count> all;
  for (const auto& e : entries_)
    if (const char* const what = e.what.load()) all.push_back({what, e.times.load(std::memory_order_relaxed)});
  if (const std::uint64_t times = other_.load(std::memory_order_relaxed))
    all.push_back({.what = "other", .times = times});
  return all;
}

}}   // namespace millrace
