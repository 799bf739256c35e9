// Nanoseconds of one of the system's clocks.
//
//   const std::int64_t start = mr::read_clock_ns(CLOCK_MONOTONIC);
//
// The standard's clocks read the same ones, but <chrono> brings the calendar and its streams along, which is a fifth of
// what including the library costs. Errors: none. May be called from any thread.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <time.h>

namespace millrace { inline namespace MILLRACE_ABI {

inline std::int64_t read_clock_ns(clockid_t clock) noexcept {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

/// Of the clock that nobody sets.
inline std::uint64_t steady_now_ns() noexcept { return static_cast<std::uint64_t>(read_clock_ns(CLOCK_MONOTONIC)); }

}}  // namespace millrace
