// Event counts: counts, by name, of events that are worth knowing but are no error (skipped members, accepted damage).
//
//   s.count("progressive JPEGs");                    // in render(row, s) of a column; `s` is a mr::scratch
//   for (const auto& c : run.stats().counts) std::cout << c.what << ": " << c.times << '\n';
//
// A name is a string literal, because only its address is kept; equal texts share one count. At most 48 names; the
// events of further names are counted as "other". A line of text may be left to be shown to the user; only the first
// line is kept.
// Errors: none. Threads: any number may count and read at once; counting neither waits nor allocates.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The name of an event, and how often the event occurred.
struct event_count {
  const char* what = "";
  std::uint64_t times = 0;
};

/// Counts events by name.
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

  /// Leaves a line to be shown to the user, cut after 499 bytes. Does nothing if there is a line already.
  void tell(std::string_view line) noexcept {
    auto none = news::none;
    if (!news_.compare_exchange_strong(none, news::written)) return;
    line.copy(line_.data(), line_.size() - 1);
    news_.store(news::told);
  }
  /// Returns the line to the first caller, then null; null if there is none. The text lives as long as this object.
  const char* take_line() noexcept {
    auto told = news::told;
    return news_.load(std::memory_order_relaxed) == told && news_.compare_exchange_strong(told, news::taken)
               ? line_.data() : nullptr;
  }

  /// Returns all counts, in the order in which the names first occurred.
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

}}}  // namespace millrace::detail
