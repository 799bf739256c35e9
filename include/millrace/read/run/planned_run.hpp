// The order of a run, as its session uses it. It is computed from an index, or replayed from the shards.
//
//   mr::detail::owner<mr::detail::planned_run> order = plan();              // an indexed_run or a replayed_run
//   const mr::detail::batch_origin origin = order->account_for(batch);   // each batch once, in order
//   order->finish();                                                     // no batch follows
//
// Errors: account_for() and finish() throw conservation_error if samples are missing or too many.
// Threads: the trainer calls account_for() and finish(); any thread may call the other functions.
#pragma once

#include <millrace/item/column/batch_origin.hpp>
#include <millrace/measure/values/run_stats.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/order/batch_numbers.hpp>
#include <millrace/order/shuffle_quality.hpp>
#include <millrace/sync/batch_ring.hpp>
#include <millrace/work/segment/ticket_input.hpp>

#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The order of a run: the interface for its session.
class planned_run {
 public:
  virtual ~planned_run() = default;
  /// Accounts for a batch, and returns its origin. Corrects b.epoch if an epoch is not a pass. If the batch has an
  /// error, the origin is empty.
  virtual batch_origin account_for(ready_batch& b) = 0;
  /// Completes the run after the last batch.
  virtual void finish() {}
  /// Returns the start of the session and the ends of epochs, if the source cannot compute them.
  virtual batch_boundaries boundaries() const { return {}; }
  /// Returns the numbers of the session's batches within the run.
  virtual batch_numbers numbers() const = 0;
  /// Returns the resume point of the run's beginning, which other programs with the same order share; empty if the
  /// order is not computed from an index.
  virtual std::string order_text() const { return {}; }
  /// Returns the number of samples of the shuffle window. About half of them are in memory at a time.
  virtual std::size_t window() const noexcept { return 1; }
  /// Returns whether the complete shuffle window is in memory at the beginning of the run.
  virtual bool withholds() const noexcept { return false; }
  /// Returns whether the run continues in the order of versions 1, 4 and 5 (item/position.hpp).
  virtual bool keeps_older_order() const noexcept { return false; }
  /// Returns the maximum bytes of samples that are read early, together with neighboring samples.
  virtual std::size_t held_bytes() const noexcept { return 0; }
  /// Returns the order's description for the end of the start line; may be empty.
  virtual std::string describe() const { return {}; }
  /// Returns the notices of the start: warnings, and the point at which a resumed run continues.
  virtual std::vector<notice> notices() const { return {}; }
  /// Computes advice about a poor shuffle; empty if the shuffle is good.
  virtual std::string shuffle_advice() const { return {}; }
  /// Returns the origin of the sample at position `at` of epoch `epoch`. Positions count over all ranks together.
  /// Throws setup_error if the order is not computed from an index.
  virtual error_location locate(std::uint64_t epoch, std::uint64_t at) const;
  /// Returns the observed and the expected shuffle quality. Throws setup_error if the order does not observe it.
  virtual shuffle_statistics shuffle_quality() const;
  /// Sets the statistics of the samples of the first `s.batches` batches.
  virtual void add_to(run_stats&) const {}
  /// Adds the events of planning the run; called once, at the start.
  virtual void report(event_counts&) const {}
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/read/run/impl/planned_run.inl>
#endif
