// Defines what cache_counts.hpp declares.
#pragma once

#include <millrace/io/cache/cache_counts.hpp>

#include <millrace/base/error.hpp>

#include <cstdio>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE cache_figures cache_counts::figures() const noexcept {
  const auto read = [](const counter& of) { return of.load(std::memory_order_relaxed); };
  return {.given_bytes = read(given_bytes), .fetched_bytes = read(fetched_bytes), .ahead_bytes = read(ahead_bytes),
          .passed_bytes = read(passed_bytes), .written_bytes = read(written_bytes), .hits = read(hits),
          .misses = read(misses), .waits = read(waits), .waits_given_up = read(waits_given_up),
          .evictions = read(evictions), .evicted_bytes = read(evicted_bytes), .damaged_blocks = read(damaged_blocks),
          .refusals = read(refusals), .files_without_version = read(files_without_version)};
}

MILLRACE_INLINE void cache_counts::tell(const std::string& notice) const {
  if (tell_) tell_(notice);
  else std::fprintf(stderr, "millrace: %s\n", notice.c_str());
}

MILLRACE_INLINE void cache_counts::tell_trouble(const std::string& notice) {
  add(refusals);
  if (!trouble_told_.exchange(true)) tell(notice);
}

MILLRACE_INLINE void cache_counts::tell_unversioned(const std::string& name) {
  add(files_without_version);
  if (!unversioned_told_.exchange(true))
    tell("files without a version are not cached, since a replaced one could not be told from the cached one; the "
         "first is '" + printable(name) + "'");
}

}}}  // namespace millrace::detail
