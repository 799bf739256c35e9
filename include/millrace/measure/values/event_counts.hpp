// Counts notable events by name. The events are not errors. Examples are skipped members and accepted damage.
//
//   s.count("repaired frames");                      // in render(row, s) of a column; `s` is a mr::scratch
//   for (const auto& c : run.stats().counts) std::cout << c.what << ": " << c.times << '\n';
//
// A name must be a string literal, because only its address is stored. Names with equal text share one count. At most
// 48 names are stored; events with other names are counted as "other". post() stores notices for the user, at most
// `most` notices of each kind.
// Errors: none. Threads: any number of threads may count, post and read concurrently. Counting does not wait and does
// not allocate.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/base/notice.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The name of an event, and the number of its occurrences.
struct event_count {
  const char* what = "";
  std::uint64_t times = 0;
};

/// Counts events by name.
class event_counts {
 public:
  /// Adds `times` to the count of the event `what`, which must be a string literal.
  void count(const char* what, std::uint64_t times = 1) noexcept;

  /// Posts a notice for the user, unless `most` notices of the same kind were already posted.
  void post(notice&& n, unsigned most = 1) noexcept;
  /// Removes the posted notices and returns them in order. If no notices were posted, the cost is one load.
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
  std::array<std::atomic<unsigned>, detail::notice_texts.size()> posted_{};   // number of posted notices by kind
  std::atomic<bool> any_posted_{false};
  std::mutex mutex_;
  std::vector<notice> notices_;   // protected by the mutex
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/measure/values/impl/event_counts.inl>
#endif
