// The interface that sets the number of workers and reads of a running session. tune/tuning.hpp implements it.
//
//   mr::session run{std::move(flow), {.tuning = mr::tuning()}};     // a tuning_rule, which creates an autotuner
//
// The session creates rule.max() workers and I/O threads. At its start it opens the number that the user requested:
// only open ones work. In next(), whenever due() is true, it passes the metrics since its start to evaluate(), and
// opens the returned numbers of workers and reads.
// Errors: next() throws an error of evaluate() and the session is not changed. next() may be called again, and no batch
// is lost. Threads: the trainer.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/flow_statistics.hpp>
#include <millrace/sync/notice_outlet.hpp>
#include <millrace/work/schedule/segment.hpp>

#include <memory>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

class concurrency;   // run/concurrency.hpp, the caller of a rule

/// Sets the workers and reads of one session while it runs.
class autotuner {
 public:
  virtual ~autotuner() = default;
  /// Returns whether evaluate() should be called now, after `batches` delivered batches.
  virtual bool due(std::uint64_t batches) const noexcept = 0;
  /// Returns the numbers of workers and reads that should be open, based on the metrics since the start of the session.
  virtual concurrency_counts evaluate(const flow_statistics& since_start) = 0;
};

/// The workers and reads of a session.
struct concurrency_limits {
  concurrency_counts open{};   ///< open at the start
  concurrency_counts max{};   ///< created, so that they can be opened
  notice_outlet* notices = nullptr;   ///< of the session
};

}  // namespace detail

/// Sets the numbers of workers and I/O threads of a session while it runs. mr::tuning() returns one.
class tuning_rule {
 public:
  virtual ~tuning_rule() = default;

 private:
  friend class detail::concurrency;

  /// Returns how many workers and reads a session should create if the user requested `requested`. The session creates
  /// fewer reads if the memory budget has no space for them.
  virtual detail::concurrency_counts max(const detail::concurrency_counts& requested) const = 0;
  /// Returns the autotuner of a session with these limits.
  virtual std::unique_ptr<detail::autotuner> start(const detail::concurrency_limits& of_session) const = 0;
};

}}  // namespace millrace
