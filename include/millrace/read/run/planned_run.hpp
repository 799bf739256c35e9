// The interface of the order of a run. The order is computed from an index, or replayed from the shards.
//
//   mr::detail::owner<mr::detail::planned_run> order = plan();              // an indexed_run or a replayed_run
//   const mr::detail::batch_origin origin = order->account_for(batch);   // each batch once, in order
//   order->finish();                                                     // no batches follow
//
// Errors: account_for() and finish() throw conservation_error if an epoch has too few or too many samples.
// Threads: the trainer (the thread that calls next()) calls account_for() and finish(). Any thread may call the other
// functions.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/column/batch_origin.hpp>
#include <millrace/item/world.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/measure/values/run_stats.hpp>
#include <millrace/order/batch_numbers.hpp>
#include <millrace/order/shuffle_quality.hpp>
#include <millrace/sync/batch_ring.hpp>
#include <millrace/work/segment/ticket_input.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Chooses the stride of a run that mixes rows (mixup, cutmix): the distance between the two rows of a pair, counted
// over the rows of all ranks.
//
// The rows p and p + stride of a global batch are a pair if floor(p / stride) is even. A rank has the rows p with p mod
// (number of ranks) = rank. Therefore, if the number of ranks divides the stride, both rows of each pair are on one
// rank.
// Errors: setup_error if the stride is invalid. Threads: pure functions; any thread.

struct row_stride_options {
  std::optional<std::size_t> requested{};   ///< empty if rows are not mixed; 0 selects the default stride
  std::uint32_t of_resume_point = 0;        ///< stride of the resume point; 0 for a new run
  std::size_t rows = 1;                     ///< rows per batch on one rank
  world mine{};
};

/// Returns the stride, or 0 if rows are not mixed. The default stride is the stride of the resume point. In a new run,
/// it is the number of ranks. Throws setup_error if the number of ranks does not divide the stride, or if no row has a
/// partner.
inline MILLRACE_RARE_CODE std::uint32_t row_stride(const row_stride_options& o) {
  if (!o.requested) return 0;
  const bool resumed = *o.requested == 0 && o.of_resume_point > 0;
  const std::size_t stride = *o.requested > 0 ? *o.requested : resumed ? o.of_resume_point : o.mine.size;
  const std::string got = "got a stride of " + std::to_string(stride) + (resumed ? " (from the resume point)" : "");
  if (stride % o.mine.size != 0)
    throw setup_error("mix_rows() would pair rows of different ranks: " + got + ", expected a multiple of the " +
                          std::to_string(o.mine.size) + " ranks",
                      resumed ? "Resume with a number of ranks that divides the stride"
                              : "Set mix_rows' .stride to a multiple of the number of ranks, or omit it");
  if (stride / o.mine.size >= o.rows)
    throw setup_error("no row of a batch has a partner to mix with: " + got + ", expected less than the " +
                          std::to_string(o.rows * o.mine.size) + " rows of a batch over all ranks",
                      "Use larger batches, or a smaller mix_rows .stride");
  return static_cast<std::uint32_t>(stride);
}

/// The order of a run.
class planned_run {
 public:
  virtual ~planned_run() = default;
  /// Counts a batch. Returns its origin: the step, the number of rows on all ranks, and the resume point after the
  /// batch. Corrects b.epoch if an epoch is not a pass. If the batch has an error, the origin is empty.
  virtual batch_origin account_for(ready_batch& b) = 0;
  /// Call it after the last batch.
  virtual void finish() {}
  /// Returns the number of the first batch of the session, and the batches at which epochs end. The result is empty if
  /// the order is computed from an index.
  virtual batch_boundaries boundaries() const { return {}; }
  /// Returns the state of the run at the start of the session. From it, the epoch and the number of each batch of the
  /// session are computed.
  virtual batch_numbers numbers() const = 0;
  /// Returns the resume point for the beginning of the run, or "" without an index. Programs whose runs have the same
  /// order get the same text.
  virtual std::string order_text() const { return {}; }
  /// Returns the size of the shuffle window in samples. In steady state, about half a window of samples is in memory.
  virtual std::size_t window() const noexcept { return 1; }
  /// Returns whether the first batch of the run waits until the complete shuffle window is in memory.
  virtual bool withholds() const noexcept { return false; }
  /// Returns whether the run was resumed from a resume text with a version below 6 (item/position.hpp). Such a run
  /// keeps the older order.
  virtual bool keeps_older_order() const noexcept { return false; }
  /// Samples that are stored next to a requested sample are read with it. Returns the maximum size of these additional
  /// samples in bytes.
  virtual std::size_t held_bytes() const noexcept { return 0; }
  /// Returns a phrase about the order, for the line that the session reports at its start. Returns "" if there is
  /// nothing to report.
  virtual std::string describe() const { return {}; }
  /// Returns the notices of the start: warnings, and the point at which a resumed run continues.
  virtual std::vector<notice> notices() const { return {}; }
  /// Returns advice about a poor shuffle, or "" if the shuffle is good.
  virtual std::string shuffle_advice() const { return {}; }
  /// Returns the shard, key and offset of the sample at position `at` of epoch `epoch`. `at` counts the rows of all
  /// ranks. Throws setup_error if the order is not computed from an index.
  virtual error_location locate(std::uint64_t epoch, std::uint64_t at) const;
  /// Returns the observed and the expected shuffle quality. Throws setup_error if the source has no index, or is a
  /// mix().
  virtual shuffle_statistics shuffle_quality() const;
  /// Sets the statistics that depend on the order: digest, dropped_last and sources. Requires that `batches` is set.
  virtual void add_to(run_stats&) const {}
  /// Adds the events of the start of the run. Called once, at the start.
  virtual void report(event_counts&) const {}
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/read/run/impl/planned_run.inl>
#endif
