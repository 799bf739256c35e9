// Controls two numbers for the workers of a session, and two for its I/O threads: the maximum number, and the number of
// open (active) threads. Tuning changes the number of open threads.
//
//   mr::detail::concurrency threads(options, workers, notices);
//   threads.max_workers();  threads.max_reads();       // the session allocates for these numbers
//   threads.open(nodes);                                 // applies the initial numbers; call it before the nodes start
//   threads.start(reads_that_memory_allows);             // starts the tuner; call it when the limit of reads is known
//   if (threads.due(batches) && threads.tune(metrics, nodes)) warm_up();   // true if a number changed
//
// Without a tuning_rule, all threads are always open.
// Errors: the errors of the tuning rule. Threads: not synchronized. Only the trainer (the thread that
// calls next()) uses this class.
#pragma once

#include <millrace/item/owner.hpp>
#include <millrace/run/session_options.hpp>
#include <millrace/tune/autotuner.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The open and the maximum number of workers and I/O threads.
class concurrency {
 public:
  /// `workers` is the number of workers at the start. If `workers` is 0, nothing is tuned.
  concurrency(const session_options& o, unsigned workers, notice_outlet& notices);

  /// Returns the maximum number of workers that tuning may open.
  unsigned max_workers() const noexcept { return static_cast<unsigned>(limits_.max.workers); }
  /// Returns the maximum number of I/O threads that tuning may open.
  unsigned max_reads() const noexcept { return static_cast<unsigned>(limits_.max.reads); }

  /// Sets the open numbers of threads in all pipeline nodes. Does nothing without a tuning rule.
  void open(const std::vector<pipeline_node*>& all) const;
  /// Limits the I/O threads that tuning may open to `reads_within_memory`, but not to fewer than the initial number.
  /// Then starts the tuner.
  void start(std::size_t reads_within_memory);

  /// Returns the tuning limits as text for the session's description; empty without a tuning rule.
  std::string describe() const;
  /// Returns true if the tuner requests metrics after this number of batches.
  bool due(std::uint64_t batches) const noexcept { return tuner_ && tuner_->due(batches); }
  /// Passes the metrics to the tuner, and opens as many threads as the tuner returns. Returns true if a number has
  /// changed.
  bool tune(const flow_statistics& since_start, const std::vector<pipeline_node*>& all);

 private:
  const std::shared_ptr<const tuning_rule> rule_;
  concurrency_limits limits_;
  owner<autotuner> tuner_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/concurrency.inl>
#endif
