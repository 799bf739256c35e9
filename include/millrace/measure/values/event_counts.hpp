// Event counts: counts, by name, of notable events that are not errors (skipped members, accepted damage).
//
//   s.count("repaired frames");                      // in render(row, s) of a column; `s` is a mr::scratch
//   for (const auto& c : run.stats().counts) std::cout << c.what << ": " << c.times << '\n';
//
// A name is a string literal, because only its address is stored; equal texts share one count. At most 48 names; the
// events of further names are counted as "other". Notices for the user may be posted here too: the first of each kind,
// or the first few.
// Errors: none. Threads: any number may count, post and read concurrently; counting neither waits nor allocates.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/base/notice.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The text of an event, and its number of occurrences.
struct event_count {
  const char* what = "";
  std::uint64_t times = 0;
};

/// Counts events by name.
class event_counts {
 public:
  /// Adds to the count of `what`, a string literal.
  void count(const char* what, std::uint64_t times = 1) noexcept;

  /// Posts a notice for the user, unless `most` of its kind were posted before.
  void post(notice&& n, unsigned most = 1) noexcept;
  /// Removes and returns the posted notices, in order. Costs one load where there are none.
  std::vector<notice> take_posted() noexcept;

  /// Returns all counts, in the order in which the names first occurred.
  std::vector<event_count> counts() const;

 private:
  struct entry {
    std::atomic<const char*> what{nullptr};
    std::atomic<std::uint64_t> times{0};
  };
  std::array<entry, 48> entries_{};
  std::atomic<std::uint64_t> other_{0};
  std::array<std::atomic<unsigned>, detail::notice_texts.size()> posted_{};   // by kind
  std::atomic<bool> any_posted_{false};
  std::mutex mutex_;
  std::vector<notice> notices_;   // under the mutex
};

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/measure/values/impl/event_counts.inl>
#endif
