// The training log: accepts rows from the training loop, and writes them on a separate thread to its sinks (outputs,
// such as a file). A row contains the values of one step; it is not a row of a batch.
//
//   mr::log out(mr::status_line{}, mr::json_lines("run.jsonl"), mr::tensorboard("runs/first"));
//   out.push({.step = step, .values = {{"learning_rate", rate}}});     // if full, drops rows of the lowest steps
//   if (!out.offer(r)) keep(r);                                        // if full, the caller keeps the row
//   out.message("lowered the learning rate");
//   out.close();                                                       // or the destructor
//
// push, offer and message never wait for a sink; a call costs a lock and a move. If rows arrive faster than the sinks
// write, the log drops rows and counts them.
// Order: rows that arrive within `hold` of each other are written in step order, regardless of their order of arrival.
// If a row arrives after a row of a later step was written, the log writes the row anyway, and counts it as late.
// Text that is not UTF-8 is cleaned before the sinks receive it: each invalid byte becomes U+FFFD.
// Errors: an error of a sink does not stop the training. The first error of each sink is reported as a notice, and all
// errors are counted. The constructor throws setup_error for a queue of 0 rows.
// Threads: any thread may call any function.
// Lifetime: close() and the destructor write the remaining rows, for at most `drain`. If a sink hangs longer, the
// writer thread is detached, and the remaining rows count as dropped.
// Your own class can be a sink:
//
//   struct to_database final : mr::sink {
//     const char* name() const noexcept override { return "database"; }
//     void write(const mr::row& r) override { connection.insert(r.step, r.values); }
//   };
//   mr::log both(mr::status_line{}, to_database{});
//
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/version.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/sync/notice_outlet.hpp>

#include <concepts>
#include <condition_variable>   // also for std::chrono's durations, because <chrono> costs more compile time
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

// One entry of a training log: measured values, their step and their time.
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
  std::int64_t unix_ns =
      0;   ///< time of the values, in ns since 1970-01-01 UTC; if 0, push() or offer() sets the current time
  std::vector<quantity> values{};
  std::uint64_t nonfinite = 0;   ///< number of NaN and infinite values excluded from `values`
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
// Classes that need the time have a time_source in their options. Tests can replace this time_source. Several threads
// may call a time_source concurrently.

/// One point in time, on the steady clock and on the wall clock.
struct instant {
  std::int64_t steady_ns = 0;   ///< time since an arbitrary start; never jumps
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

/// Receives the rows of a log, one at a time: a terminal, a file, or your own class. The log counts every exception of
/// a sink and reports the first; the sink still receives the next row. The log calls its sinks only from its writer
/// thread. Therefore a sink needs no lock and may be slow.
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
  virtual void tick(instant) {}   ///< called at least ten times per second; a sink may redraw its line or sync its file
  virtual void close() {}         ///< called after the last row
};

/// Options of a log.
struct log_options {
  std::size_t queue_rows = 1024;                                    ///< maximum number of queued rows
  std::size_t queue_bytes = std::size_t{64} << 20;                  ///< maximum memory of the queued rows
  std::chrono::nanoseconds hold = std::chrono::milliseconds(200);   ///< time that a row waits for rows of earlier steps
  std::chrono::nanoseconds drain = std::chrono::seconds(5);         ///< timeout of close() and of flush()
  time_source now = detail::system_instant;
  notice_function notice{};   ///< receives errors of sinks; if empty, they are printed to stderr
};

/// Counts of rows since the construction of the log. `accepted` is the sum of `written`, `failed`, `dropped` and the
/// rows that are not written yet.
struct log_counts {
  std::uint64_t accepted = 0;
  std::uint64_t written = 0;   ///< rows that every sink has written
  std::uint64_t failed = 0;    ///< at least one sink threw; the other sinks have the row
  std::uint64_t dropped = 0;   ///< dropped from a full queue, or still queued at the timeout of close()
  std::uint64_t refused =
      0;   ///< not accepted: offer() with a full queue, a call after close(), or a row larger than `queue_bytes`
  std::uint64_t late = 0;          ///< written after a row of a later step
  std::uint64_t sink_errors = 0;   ///< errors of all sinks, including errors in tick() and close()
};

namespace detail {

/// The state that the log and its writer thread own together. The state stays valid for a sink that hangs after
/// close().
class log_state {
 public:
  log_state(log_options options, std::vector<owner<sink>> sinks);
  log_state(const log_state&) = delete;
  log_state& operator=(const log_state&) = delete;
  ~log_state();

  bool put(row& r, bool may_drop);

  /// Waits until all accepted rows are written and, if `then_close` is true, the sinks are closed.
  /// Returns false after the timeout `drain`.
  bool drain(bool then_close);

  log_counts counts() const;

  void run() noexcept;

 private:
  struct entry {
    row r;
    std::int64_t arrived_ns;
    std::size_t size_bytes;
  };
  static constexpr auto tick_every = std::chrono::milliseconds(50);

  std::int64_t stamp(row& r) const;
  bool can_accept(std::size_t size) const noexcept;
  void drop_first();

  /// Returns whether the row of the lowest step may be written: one of the queued rows has waited for `hold`, or the
  /// log is being drained.
  bool ready(std::unique_lock<std::mutex>&) const;
  void write_first(std::unique_lock<std::mutex>& lock);
  void tick(std::unique_lock<std::mutex>& lock);

  /// Runs `call` without the lock. Returns false if `call` threw.
  template <class F>
  bool guarded(std::size_t index, F&& call) noexcept {
    try {
      call();
      return true;
    } catch (const std::exception& e) {
      report(index, e.what());
    } catch (...) {
      report(index, "an exception of unknown type");
    }
    const std::lock_guard lock(mutex_);
    ++counts_.sink_errors;
    return false;
  }
  void report(std::size_t index, const char* what) noexcept;

  const log_options options_;
  notice_outlet notices_;
  const std::vector<owner<sink>> sinks_;
  std::vector<bool> reported_;   // used by the writer thread only

  mutable std::mutex mutex_;
  std::condition_variable wake_writer_, progress_;
  std::deque<entry> waiting_;   // in step order; rows of one step in the order of arrival
  std::size_t waiting_bytes_ = 0;
  std::uint64_t last_step_ = 0, written_step_ = 0;
  log_counts counts_;
  int draining_ = 0;
  bool closing_ = false, writing_ = false, finished_ = false;
};

}   // namespace detail

/// mr::log: queues rows and writes them to its sinks.
class log {
 public:
  /// Starts the writer thread. Throws setup_error if options.queue_rows is 0.
  template <std::derived_from<sink>... S>
  explicit log(log_options options, S... sinks) {
    if (options.queue_rows == 0)
      throw setup_error("log_options::queue_rows is 0", "Set at least 1, or omit the option");
    std::vector<detail::owner<sink>> all;
    (all.push_back(detail::make_owner<S>(std::move(sinks))), ...);
    state_ = std::make_shared<detail::log_state>(std::move(options), std::move(all));
    start();
  }
  template <std::derived_from<sink>... S>
  explicit log(S... sinks) : log(log_options{}, std::move(sinks)...) {}
  log(const log&) = delete;
  log& operator=(const log&) = delete;
  ~log() { close(); }

  /// Queues the row; a full queue drops the rows of the lowest steps.
  /// Returns false after close() and for a row larger than `queue_bytes`.
  bool push(row r) { return state_->put(r, true); }
  /// Queues the row. If the queue is full, returns false and does not move the row.
  bool offer(row& r) { return state_->put(r, false); }
  bool offer(row&& r) { return state_->put(r, false); }
  /// Queues a line of text, which is written after all rows that were queued before it. Returns the result of push().
  bool message(std::string text);

  /// Blocks until the sinks have received all queued rows. Returns false after the timeout `drain`.
  bool flush() { return state_->drain(false); }
  /// Writes the remaining rows and closes the sinks.
  /// Returns false after the timeout `drain`. Never throws.
  bool close() noexcept;

  /// Returns the counts of rows so far.
  log_counts counts() const { return state_->counts(); }

 private:
  void start();

  std::shared_ptr<detail::log_state> state_;
  std::thread writer_;
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/train/impl/log.inl>
#endif
