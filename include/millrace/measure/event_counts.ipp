// Defines what event_counts.hpp declares.
#pragma once

#include <millrace/measure/event_counts.hpp>

#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

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

MILLRACE_INLINE void event_counts::tell(std::string_view line) noexcept {
  auto none = news::none;
  if (!news_.compare_exchange_strong(none, news::written)) return;
  line.copy(line_.data(), line_.size() - 1);
  news_.store(news::told);
}

MILLRACE_INLINE const char* event_counts::take_line() noexcept {
  auto told = news::told;
  return news_.load(std::memory_order_relaxed) == told && news_.compare_exchange_strong(told, news::taken)
             ? line_.data() : nullptr;
}

MILLRACE_INLINE std::vector<event_count> event_counts::counts() const {
  std::vector<event_count> all;
  for (const auto& e : entries_)
    if (const char* const name = e.what.load()) all.push_back({name, e.times.load(std::memory_order_relaxed)});
  if (const std::uint64_t times = other_.load(std::memory_order_relaxed)) all.push_back({"other", times});
  return all;
}

}}}  // namespace millrace::detail
