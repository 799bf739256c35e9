// The destination of the rows of a log: a terminal, a file, or your own class.
//
//   struct to_database final : mr::sink {
//     const char* name() const noexcept override { return "database"; }
//     void write(const mr::row& r) override { connection.insert(r.step, r.values); }
//   };
//   mr::log out(mr::status_line{}, to_database{});
//
// Errors: the log counts every exception of a sink and reports the first; the sink still receives the next row.
// Threads: the log calls its sinks only from its writer thread. Therefore a sink needs no lock and may be slow.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/base/version.hpp>
#include <millrace/train/row.hpp>

#include <cstdint>
#include <functional>

namespace millrace { inline namespace MILLRACE_ABI {

// A time on two clocks: the steady clock for intervals, and the wall clock for output.
// The options of classes that need the time contain a time_source, so that tests can replace it. Several threads may
// call a time_source concurrently.

/// One point in time, on the steady clock and on the wall clock.
struct instant {
  std::int64_t steady_ns = 0;   ///< never jumps; since an arbitrary point in time
  std::int64_t unix_ns = 0;     ///< wall clock, since 1970-01-01 UTC
};

namespace detail {

/// Returns the current time of the system's clocks.
inline instant system_instant() noexcept { return {read_clock_ns(CLOCK_MONOTONIC), read_clock_ns(CLOCK_REALTIME)}; }

/// Converts nanoseconds to seconds. Full seconds and the remainder are converted separately, because the nanoseconds
/// of a wall clock have more digits than a double can represent.
constexpr double to_seconds(std::int64_t ns) noexcept {
  constexpr std::int64_t second = 1'000'000'000;
  return static_cast<double>(ns / second) + static_cast<double>(ns % second) / 1e9;
}

}   // namespace detail

/// Returns the current time; any thread may call it.
using time_source = std::function<instant()>;

/// Receives the rows of a log, one at a time.
class sink {
 public:
  sink() = default;
  sink(sink&&) = default;
  sink& operator=(sink&&) = default;
  virtual ~sink() = default;

  /// Returns the name of the sink for error messages.
  virtual const char* name() const noexcept = 0;
  /// Writes one row.
  virtual void write(const row& r) = 0;
  virtual void tick(instant) {}   ///< called ten times a second or more often, to redraw or to sync
  virtual void close() {}         ///< called after the last row
};

}}   // namespace millrace
