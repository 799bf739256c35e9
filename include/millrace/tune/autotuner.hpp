// The interface of tuners. A tuner sets the numbers of active workers and I/O threads of a running session.
// tune/tuning.hpp implements a tuner.
//
//   mr::session run{std::move(flow), {.tuning = mr::tuning()}};     // a tuning_rule, which creates an autotuner
//
// The session creates as many workers and I/O threads as tuning_rule::max() returns. Only open workers and threads are
// active. At its start, the session opens as many workers and I/O threads as the user requested. In next(), if due()
// returns true, the session passes its metrics since the start to evaluate(). Then the session sets the numbers of open
// workers and I/O threads to the result.
// Errors: next() throws the errors of evaluate(), and the numbers stay the same. The user may call next() again, and no
// batch is lost. Threads: the training thread.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/measure/values/flow_statistics.hpp>
#include <millrace/sync/notice_outlet.hpp>
#include <millrace/work/schedule/segment.hpp>

#include <memory>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

class concurrency;   // run/concurrency.hpp; creates and calls the autotuner

/// Sets the numbers of open workers and I/O threads of one session while it runs.
class autotuner {
 public:
  virtual ~autotuner() = default;
  /// Returns whether evaluate() should be called now. `batches` is the number of batches delivered so far.
  virtual bool due(std::uint64_t batches) const noexcept = 0;
  /// Returns the new numbers of open workers and I/O threads, based on the metrics since the session's start.
  virtual concurrency_counts evaluate(const flow_statistics& since_start) = 0;
};

/// The numbers of workers and I/O threads of a session.
struct concurrency_limits {
  concurrency_counts open{};          ///< numbers of open workers and I/O threads at the start
  concurrency_counts max{};           ///< maximum numbers that evaluate() may return
  notice_outlet* notices = nullptr;   ///< the session's outlet for notices
};

}   // namespace detail

/// Sets the numbers of workers and I/O threads of a session while it runs. mr::tuning() returns a tuning_rule.
class tuning_rule {
 public:
  virtual ~tuning_rule() = default;

 private:
  friend class detail::concurrency;

  /// Returns the maximum numbers of workers and I/O threads. The session creates this many. `requested` contains the
  /// numbers that the user requested. If the memory budget is too small for this many I/O threads, start() receives a
  /// lower maximum.
  virtual detail::concurrency_counts max(const detail::concurrency_counts& requested) const = 0;
  /// Returns an autotuner for a session with these limits.
  virtual detail::owner<detail::autotuner> start(const detail::concurrency_limits& of_session) const = 0;
};

}}   // namespace millrace
