// Counts of what is worth knowing but is no error, by name: members passed over, damage accepted.
//
//   void render(std::span<std::uint8_t> row, mr::scratch& s) const { ... s.count("progressive JPEGs"); }
//   for (const mr::counted& c : run.stats().counts) std::printf("%s: %llu\n", c.what, c.times);
//
// A name is a string literal: only its address is kept, equal texts are one count. At most 48 names; counts of further
// ones come under "other". Threads: any number may count and read at once; nothing waits or allocates while counting.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

namespace millrace::inline MILLRACE_ABI {

/// One text and how often it was counted.
struct counted {
  const char* what = "";
  std::uint64_t times = 0;
};

class tally {
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

  /// In the order in which the names first came up.
  std::vector<counted> counts() const {
    std::vector<counted> all;
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
};

}  // namespace millrace::inline MILLRACE_ABI
