// Reads one of the system's clocks, in nanoseconds.
//
//   const std::int64_t start = mr::detail::read_clock_ns(CLOCK_MONOTONIC);
//
// The header avoids <chrono>, which would increase the compile time of the library's headers by a fifth. Errors: none.
// Threads: any thread.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <time.h>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the time of `clock`, in nanoseconds.
inline std::int64_t read_clock_ns(clockid_t clock) noexcept {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

/// Returns the time of the monotonic clock, in nanoseconds. Setting the system time does not affect this clock.
inline std::uint64_t steady_now_ns() noexcept { return static_cast<std::uint64_t>(read_clock_ns(CLOCK_MONOTONIC)); }

}}}   // namespace millrace::detail
