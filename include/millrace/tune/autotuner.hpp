// Who decides, while a session runs, how many seats of workers and readers are open. tune/tuning.hpp has one to use.
//
//   mr::session run{std::move(flow), {.tuning = mr::tuning()}};     // a tuning_rule, which makes a autotuner
//
// The session makes room for rule.most() seats, opens those that it was asked for, and in each next() before which
// due() was true it shows the figures since the start to look(), and opens as many seats as that says.
// Errors: what look() throws leaves the session as it is and comes out of next(), which may be called again, and no
// batch is lost. Threads: the trainer's.
#pragma once

#include <millrace/measure/flow_figures.hpp>
#include <millrace/work/segment.hpp>

#include <memory>

namespace millrace { inline namespace MILLRACE_ABI {

/// Of one session, while it runs.
class autotuner {
 public:
  virtual ~autotuner() = default;
  virtual bool due(std::uint64_t batches) const noexcept = 0;
  virtual concurrency_counts look(const flow_figures& since_start) = 0;
};

/// Seats of a session.
struct concurrency_limits {
  concurrency_counts open{};   ///< at the start
  concurrency_counts most{};   ///< that there are
};

/// What sessions are told: each gets a autotuner of its own from it.
class tuning_rule {
 public:
  virtual ~tuning_rule() = default;
  /// That a session shall have, where the user asked for `asked`. What memory leaves no room for it has not.
  virtual concurrency_counts most(const concurrency_counts& asked) const = 0;
  virtual std::unique_ptr<autotuner> start(const concurrency_limits& of_session) const = 0;
};

}}  // namespace millrace
