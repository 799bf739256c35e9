// The counters of a cache during a run, and its notices.
//
//   mr::detail::cache_counts counts(options.notice);
//   counts.hits.fetch_add(1, std::memory_order_relaxed);
//   counts.report_trouble("the cache is full");               // reported once, counted each time
//   mr::cache_statistics now = counts.statistics();
//
// Errors: none. Threads: thread-safe.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/io/cache/cache_options.hpp>
#include <millrace/sync/notice_outlet.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The counters. All threads add to the same counters.
class cache_counts {
 public:
  using counter = std::atomic<std::uint64_t>;

  explicit cache_counts(notice_function notices) : notices_(std::move(notices)) {}

  counter delivered_bytes{0}, fetched_bytes{0}, prefetched_bytes{0}, uncached_bytes{0}, written_bytes{0};
  counter hits{0}, misses{0}, waits{0}, waits_given_up{0}, evictions{0}, evicted_bytes{0}, damaged_blocks{0};
  counter refusals{0}, files_without_version{0};

  static void add(counter& to, std::uint64_t n = 1) noexcept { to.fetch_add(n, std::memory_order_relaxed); }
  /// Returns the counts so far.
  cache_statistics statistics() const noexcept {
    const auto read = [](const counter& of) { return of.load(std::memory_order_relaxed); };
    return {.delivered_bytes = read(delivered_bytes), .fetched_bytes = read(fetched_bytes),
            .prefetched_bytes = read(prefetched_bytes), .uncached_bytes = read(uncached_bytes),
            .written_bytes = read(written_bytes), .hits = read(hits),
            .misses = read(misses), .waits = read(waits), .waits_given_up = read(waits_given_up),
            .evictions = read(evictions), .evicted_bytes = read(evicted_bytes), .damaged_blocks = read(damaged_blocks),
            .refusals = read(refusals), .files_without_version = read(files_without_version)};
  }

  /// Counts a block that cannot be stored. Reports the reason in the first call only.
  void report_trouble(const std::string& reason) {
    add(refusals);
    if (!trouble_reported_.exchange(true)) report(reason);
  }
  /// Counts a file for which the storage returned no version. Reports the file in the first call only.
  void report_unversioned(const std::string& name) {
    add(files_without_version);
    if (!unversioned_reported_.exchange(true))
      report("files without a version are not cached, because a replaced file would look like the cached one; the "
           "first is '" + printable(name) + "'");
  }

 private:
  void report(const std::string& text) {
    notices_.deliver({.kind = notice_kind::cache, .severity = notice_severity::warning, .text = text});
  }

  notice_outlet notices_;
  std::atomic<bool> trouble_reported_{false}, unversioned_reported_{false};
};

}}}  // namespace millrace::detail
