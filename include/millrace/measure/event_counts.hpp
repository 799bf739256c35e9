// Counts of what is worth knowing but is no error, by name: members passed over, damage accepted.
//
//   void render(std::span<std::uint8_t> row, mr::scratch& s) const { ... s.count("progressive JPEGs"); }
//   for (const mr::event_count& c : run.stats().counts) std::printf("%s: %llu\n", c.what, c.times);
//
// A name is a string literal: only its address is kept, equal texts are one count. At most 48 names; counts of further
// ones come under "other". A line may be left for whoever runs the flow to tell people; of several, the first.
// Threads: any number may count and read at once; nothing waits or allocates while counting.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// One text and how often it was counted.
struct event_count {
  const char* what = "";
  std::uint64_t times = 0;
};

class event_counts {
 public:
  void count(const char* what, std::uint64_t times = 1) noexcept {
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

  /// Leaves a line to tell; cut where it is very long.
  void tell(std::string_view line) noexcept {
    auto none = news::none;
    if (!news_.compare_exchange_strong(none, news::written)) return;
    line.copy(line_.data(), line_.size() - 1);
    news_.store(news::told);
  }
  /// The line, once; null if there is none. Lives as long as this.
  const char* take_line() noexcept {
    auto told = news::told;
    return news_.load(std::memory_order_relaxed) == told && news_.compare_exchange_strong(told, news::taken)
               ? line_.data() : nullptr;
  }

  /// In the order in which the names first came up.
  std::vector<event_count> counts() const {
    std::vector<event_count> all;
    for (const auto& e : entries_)
      if (const char* const name = e.what.load()) all.push_back({name, e.times.load(std::memory_order_relaxed)});
    if (const std::uint64_t times = other_.load(std::memory_order_relaxed)) all.push_back({"other", times});
    return all;
  }

 private:
  struct entry {
    std::atomic<const char*> what{nullptr};
    std::atomic<std::uint64_t> times{0};
  };
  std::array<entry, 48> entries_{};
  std::atomic<std::uint64_t> other_{0};
  enum class news : std::uint8_t { none, written, told, taken };
  std::atomic<news> news_{news::none};
  std::array<char, 500> line_{};
};

}}  // namespace millrace
