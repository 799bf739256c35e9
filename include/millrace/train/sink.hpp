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

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

// One record of a log: measured values, their step and their time.
//
//   out.push({.step = 1200, .epoch = 3, .values = {{"loss", 0.41}, {"learning_rate", 0.1}}});
//   if (auto loss = r.find("loss")) use(*loss);
//
// A row with a message and no values is a line of text. Errors: none. Threads: not synchronized. Lifetime: a row owns
// all its content.

/// The unit of a value. The unit affects only how the value is printed.
enum class quantity_unit : std::uint8_t {
  plain,        ///< for example a mean or a learning rate
  count,        ///< an integer
  per_second,   ///< printed as name/s
  share         ///< 0..1, printed in percent
};

/// One metric's name and value.
struct quantity {
  std::string name{};
  double value = 0;
  quantity_unit unit = quantity_unit::plain;
};

/// An image as the bytes of a JPEG or PNG file. Sinks that cannot show images ignore it.
struct encoded_image {
  std::string name{};
  std::vector<std::byte> file{};
  std::size_t width = 0;
  std::size_t height = 0;
};

/// The values, images and message of one step.
struct row {
  std::uint64_t step = 0;
  std::optional<std::uint64_t> epoch{};
  std::int64_t unix_ns = 0;   ///< time of the values since 1970; 0 for the time of push() or offer()
  std::vector<quantity> values{};
  std::uint64_t nonfinite = 0;   ///< NaN and infinite values that were excluded from `values`
  std::vector<encoded_image> images{};
  std::string message{};

  /// Returns the value with this name; std::nullopt if the row has no such value.
  std::optional<double> find(std::string_view name) const noexcept;

  /// Replaces each byte that is not valid UTF-8 with U+FFFD, in all text of the row.
  void clean_text();

  /// Returns the approximate size of the row. The log uses this size to limit its queue.
  std::size_t held_bytes() const noexcept;
};

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

#ifndef MILLRACE_COMPILED
#include <millrace/train/impl/sink.inl>
#endif
