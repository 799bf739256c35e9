// A moment on two clocks: steady for intervals, wall for what is written down.
//
//   mr::instant start = mr::system_instant();
//   ... (mr::system_instant().steady_ns - start.steady_ns) * 1e-9;     // seconds, whatever happens to the wall clock
//
// Classes that need the time take a time_source in their options, so that tests and replays bring their own. It may be
// called from several threads at once. Errors: none.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/base/version.hpp>

#include <cstdint>
#include <functional>

namespace millrace { inline namespace MILLRACE_ABI {

struct instant {
  std::int64_t steady_ns = 0;   ///< never jumps; from an arbitrary zero
  std::int64_t unix_ns = 0;     ///< wall clock, since 1970-01-01 UTC
};

inline instant system_instant() noexcept {
  return {read_clock_ns(CLOCK_MONOTONIC), read_clock_ns(CLOCK_REALTIME)};
}

/// Whole and broken seconds are converted apart: a wall clock's nanoseconds have more digits than a double.
constexpr double to_seconds(std::int64_t ns) noexcept {
  constexpr std::int64_t second = 1'000'000'000;
  return static_cast<double>(ns / second) + static_cast<double>(ns % second) / 1e9;
}

using time_source = std::function<instant()>;

}}  // namespace millrace
