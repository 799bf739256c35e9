// Defines what cache_options.hpp declares.
#pragma once

#include <millrace/io/cache/cache_options.hpp>

#include <millrace/base/format.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE double cache_figures::share() const noexcept {
  const double given = static_cast<double>(given_bytes);
  const double below = static_cast<double>(fetched_bytes) + static_cast<double>(passed_bytes);
  return given > below ? (given - below) / given : 0;
}

MILLRACE_INLINE std::string cache_figures::text() const {
  const auto bytes = [](std::uint64_t n) { return detail::bytes_text(static_cast<double>(n)); };
  const auto counted = [](std::uint64_t n, const char* one, const char* many) {
    return n == 0 ? std::string() : "; " + std::to_string(n) + (n == 1 ? one : many);
  };
  return detail::percent(share()) + " of " + bytes(given_bytes) + " came from the cache; " + bytes(fetched_bytes) +
         " fetched, " + bytes(passed_bytes) + " passed through" +
         counted(evictions, " block made room for others", " blocks made room for others") +
         counted(waits, " wait for another process", " waits for another process") +
         counted(waits_given_up, " wait given up", " waits given up") +
         counted(damaged_blocks, " damaged block fetched again", " damaged blocks fetched again") +
         counted(refusals, " block without room", " blocks without room") +
         counted(files_without_version, " file without a version", " files without a version");
}

}}  // namespace millrace
