// A run over a source without an index. Computes the resume point after each batch, and resumes runs.
//
//   mr::detail::replayed_run run({.order = {.seed = 7, .shards = source.shards()},
//                                 .data_set = mr::detail::fingerprint_of(source), .rows = 256, .resume = text,
//                                 .epochs = 90});
//   auto stage = run.read(source, options, sink);      // the read stage, positioned at the start of the run
//   run.account_for(batch).next;       // the resume point after the batch; call it for each batch in order
//
// Without an index, the numbers of samples in the shards are unknown. Therefore the resume point contains a restart
// point: the point in the source from which samples are read again (work/segment/replay_log.hpp). The resumed run drops
// rows that were already delivered. The stages of the flow determine the restart point:
// - With maps, filters and parallel expansions, the samples in the shuffle window are read again.
// - With a stage that buffers items, and without lanes, the pass is read again from its beginning.
// - With such a stage and lanes, or if the flow can start only at the beginning of a run, the run is read again from
//   its beginning.
//
// Several ranks read lanes (interleaved substreams of the order), by default one lane each. Lane l belongs to rank l
// mod (number of ranks). In each pass, a rank reads every sample of its lanes once. The ranks have different numbers of
// samples. Therefore they may be in different passes at the same time. With another number of ranks, the order differs.
// If each sample is one row, a resume point is valid for all ranks of a run with the same number of ranks. Otherwise it
// is valid for one rank only.
// Errors: setup_error for an unsuitable number of ranks, for a resume point of another run, and for a run that is over.
// data_error for a text that is not a resume point.
// Threads: the trainer (the thread that calls next()) calls read() and account_for(). Everything else is immutable.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/world.hpp>
#include <millrace/read/run/data_identity.hpp>
#include <millrace/read/run/planned_run.hpp>
#include <millrace/read/stage/lane_starts.hpp>
#include <millrace/read/stage/shard_read_stage.hpp>
#include <millrace/work/segment/ticket_input.hpp>

#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of one run over a source without an index.
struct replayed_run_options {
  shard_order::options order{};
  std::uint64_t data_set = 0;   ///< fingerprint_of(source), see data_identity.hpp
  std::uint32_t times = 0;      ///< file_times_of(source), see data_identity.hpp
  std::size_t rows = 1;         ///< rows per batch on this rank
  bool drop_last = true;
  /// session_options::grown. A run without an index cannot continue with more data. Therefore this option only changes
  /// the message of the error.
  bool grown = false;
  std::string resume{};                          ///< text of the resume point; empty for a new run
  std::uint64_t first_epoch = 0;                 ///< first epoch of a new run
  std::uint64_t epochs = 1, epoch_batches = 0;   ///< epoch_batches is 0 if an epoch is a pass
  replay_start from = replay_start::sample;      ///< the points at which a resumed run can start reading
  bool one_row = true;                           ///< whether each sample becomes exactly one row
  std::uint64_t take = ~std::uint64_t{0};        ///< maximum samples to use in each pass
  bool takes = false;                            ///< whether the flow has a take(), at the source or later
  bool packs = false;                            ///< whether the flow has a packing stage (stages/pack.hpp)
  position::packing_limits packing{};            ///< limits of the last packing stage
  /// Distance between the two rows of a mixed pair (read/run/planned_run.hpp). Empty if rows are not mixed.
  std::optional<std::size_t> stride{};
  bool buckets = false;   ///< whether a stage sets the number of rows of each batch (stages/bucket.hpp)
  millrace::world world{};
  std::size_t max_lanes = 0;    ///< maximum number of lanes; 0 means one lane per rank
  std::string why_streamed{};   ///< the reason why the source has no index; empty if there is nothing to report
};

/// Computes the run of a session over a source without an index.
class replayed_run final : public planned_run {
 public:
  using options = replayed_run_options;

  explicit replayed_run(const options& o);
  MILLRACE_RARE ~replayed_run() override = default;

  /// Returns the size of this rank's part of the shuffle window, in samples.
  std::size_t window() const noexcept override { return options_.order.window / options_.world.size; }
  bool withholds() const noexcept override { return order_.permutes(); }
  bool keeps_older_order() const noexcept override { return start_.is_older(); }

  /// Returns the read stage, positioned at the first sample that the session reads. May first read shards to count
  /// their samples. Throws the errors of find_lane_starts().
  template <class Source>
  owner<read_stage> read(const Source& source, shard_read_stage_options o, sample_sink<typename Source::item>& next);
  /// Returns the start of the session, and the ends of epochs, for the segment that creates batches.
  batch_boundaries boundaries() const override;
  batch_numbers numbers() const override;

  /// Counts a batch. Returns its step, its number of rows on all ranks, and the resume point after it. Sets b.epoch if
  /// an epoch has a fixed number of batches.
  batch_origin account_for(ready_batch& b) override;

  /// Returns a phrase about the lanes, for the line that the session reports at its start.
  std::string describe() const override;
  /// Returns notices about a resumed run and about changed files.
  std::vector<notice> notices() const override;

 private:
  /// Throws setup_error for an unsuitable number of ranks. Returns the options. If an older version wrote the resume
  /// point, the returned options select the order of that version.
  static options checked(options o);
  std::string resumed() const;

  /// Returns the number of lanes, or 1 if the run needs no lanes. The default of `max_lanes` is the number of ranks. If
  /// there are fewer shards than `max_lanes`, returns the largest divisor of `max_lanes` that does not exceed the
  /// number of shards.
  static std::size_t lanes_of(const options& o);
  static std::uint64_t end_step(const options& o) noexcept;
  position start_of_run();
  /// Returns the number of rows of all ranks in a batch with `rows` rows on this rank, or ~0 if it is unknown.
  std::size_t global_rows(std::size_t rows) const noexcept;
  /// Returns the resume point after `batch`. Call it for each batch in order.
  position after(const ready_batch& batch);

  const options options_;
  const std::size_t lanes_;   // number of lanes of all ranks; 1 if the run has no lanes
  const shard_order order_;
  const replay_start from_;
  std::uint32_t resumed_times_ = 0;   // hash of the modification times in the resume point; 0 if unknown
  const position start_;
  position now_;   // resume point after the last delivered batch
  const owner<replay_log> log_;
  std::uint64_t counted_ = 0;   // number of shards that were read completely to count their samples
};

template <class Source>
MILLRACE_INLINE owner<read_stage> replayed_run::read(const Source& source, shard_read_stage_options o,
                                                     sample_sink<typename Source::item>& next) {
  const replay_point& r = start_.replay;
  if (lanes_ > 1) {
    const std::uint64_t ordinal = options_.one_row ? start_.step * options_.rows : r.ordinal;
    lane_starts starts = find_lane_starts(source, {.order = order_.settings(),
                                                   .lanes = lanes_,
                                                   .world = options_.world,
                                                   .ordinal = ordinal,
                                                   .threads = o.threads,
                                                   .tolerates_damage = o.lost != nullptr});
    counted_ = starts.counted;
    return make_owner<interleaved_read_stage<Source>>(
        source,
        interleaved_read_stage_options{.threads = o.threads,
                                       .read_ahead_bytes = o.read_ahead_bytes,
                                       .window_bytes = o.window_bytes,
                                       .lanes = std::move(starts.lanes),
                                       .turn = starts.turn,
                                       .first_ordinal = ordinal,
                                       .lost = o.lost},
        next);
  }
  if (options_.epoch_batches > 0) o.epochs = ~std::uint64_t{0};
  o.first_epoch = r.pass;
  o.first_shard = static_cast<std::size_t>(r.shard);
  o.first_sample = r.first;
  o.first_ordinal = r.ordinal;
  o.take = options_.take;
  if (from_ == replay_start::sample) o.log = log_.get();
  return make_owner<shard_read_stage<Source>>(source, order_, o, next);
}

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/read/run/impl/replayed_run.inl>
#endif
