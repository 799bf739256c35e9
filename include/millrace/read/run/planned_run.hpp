// The interface of the order of a run. The order is computed from an index, or replayed from the shards.
//
//   mr::detail::owner<mr::detail::planned_run> order = plan();              // an indexed_run or a replayed_run
//   const mr::detail::batch_origin origin = order->account_for(batch);   // each batch once, in order
//   order->finish();                                                     // no batches follow
//
// Errors: account_for() and finish() throw conservation_error if an epoch has too few or too many samples.
// Threads: the trainer calls account_for() and finish(). Any thread may call the other functions.
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

/// The order of a run.
class planned_run {
 public:
  virtual ~planned_run() = default;
  /// Counts a batch, and returns its origin. Corrects b.epoch if an epoch is not a pass. If the batch has an error, the
  /// origin is empty.
  virtual batch_origin account_for(ready_batch& b) = 0;
  /// Call it after the last batch.
  virtual void finish() {}
  /// Returns the start of the session, and the ends of epochs. The result is empty if the order is computed from an
  /// index.
  virtual batch_boundaries boundaries() const { return {}; }
  /// Returns a calculator for the numbers of the session's batches within the run.
  virtual batch_numbers numbers() const = 0;
  /// Returns the resume point for the beginning of the run, or "" without an index. Programs with the same order return
  /// the same text.
  virtual std::string order_text() const { return {}; }
  /// Returns the size of the shuffle window in samples. At a time, about half a window of samples is in memory.
  virtual std::size_t window() const noexcept { return 1; }
  /// Returns whether the run begins only when the complete shuffle window is in memory.
  virtual bool withholds() const noexcept { return false; }
  /// Returns whether the run continues in the order of resume points of versions 1, 4 and 5 (item/position.hpp).
  virtual bool keeps_older_order() const noexcept { return false; }
  /// Returns the maximum bytes of samples that are read early, because they are neighbors of requested samples.
  virtual std::size_t held_bytes() const noexcept { return 0; }
  /// Returns a phrase about the order, for the line that the session reports at its start. Returns "" if there is
  /// nothing to report.
  virtual std::string describe() const { return {}; }
  /// Returns the notices of the start: warnings, and the point at which a resumed run continues.
  virtual std::vector<notice> notices() const { return {}; }
  /// Returns advice about a poor shuffle, or "" if the shuffle is good.
  virtual std::string shuffle_advice() const { return {}; }
  /// Returns the origin of the sample at position `at` of epoch `epoch`. `at` counts the rows of all ranks. Throws
  /// setup_error if the order is not computed from an index.
  virtual error_location locate(std::uint64_t epoch, std::uint64_t at) const;
  /// Returns the observed and the expected shuffle quality. Throws setup_error if the order is not computed from one
  /// index.
  virtual shuffle_statistics shuffle_quality() const;
  /// Sets the statistics for the samples of the first `s.batches` batches.
  virtual void add_to(run_stats&) const {}
  /// Adds the events of the start of the run. Called once, at the start.
  virtual void report(event_counts&) const {}
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/read/run/impl/planned_run.inl>
#endif
