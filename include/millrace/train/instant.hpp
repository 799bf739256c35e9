// A time on two clocks: the steady clock for intervals, and the wall clock for output.
//
//   mr::instant start = mr::detail::system_instant();
//   auto elapsed_ns = mr::detail::system_instant().steady_ns - start.steady_ns;     // even if the wall clock is set
//
// Classes that need the time have a time_source in their options. Tests and replays replace the time_source with a
// clock of the test.
// Errors: none. Threads: a time_source may be called from several threads concurrently.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/base/version.hpp>

#include <cstdint>
#include <functional>

namespace millrace { inline namespace MILLRACE_ABI {

/// The same time on the steady and on the wall clock.
struct instant {
  std::int64_t steady_ns = 0;   ///< never jumps; since an arbitrary point in time
  std::int64_t unix_ns = 0;     ///< wall clock, since 1970-01-01 UTC
};

namespace detail {

/// Returns the current time of the system's clocks.
inline instant system_instant() noexcept {
  return {read_clock_ns(CLOCK_MONOTONIC), read_clock_ns(CLOCK_REALTIME)};
}

/// Converts nanoseconds to seconds. Full seconds and the remainder are converted separately, because the nanoseconds
/// of a wall clock have more digits than a double can represent.
constexpr double to_seconds(std::int64_t ns) noexcept {
  constexpr std::int64_t second = 1'000'000'000;
  return static_cast<double>(ns / second) + static_cast<double>(ns % second) / 1e9;
}

}  // namespace detail

/// Returns the current time; any thread may call it.
using time_source = std::function<instant()>;

}}  // namespace millrace
