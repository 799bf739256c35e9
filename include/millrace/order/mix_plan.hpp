// Maps each position of a mix to a sample, for several sources with known sample counts.
//
//   mr::detail::mix_plan plan({.sources = {{.weight = 0.7, .counts = a}, {.weight = 0.3, .counts = b}},
//                              .global_batch = 1024});
//   plan.spot_of(3, 70'000);                  // epoch 3, position 70,000: the source, and the ordinal in the source
//   plan.sample_at(3, 70'000);   // the same sample as a shard and an index; shards are numbered across all sources
//   plan.counts_before(3, 70'000);            // samples of each source since the start of the run
//
// A mix_pattern determines the source of each position. The exact_order of that source determines the sample. The mix
// does not change the order within a source. When a source runs out (all samples of its pass are delivered):
// - stop: the epoch ends after the last sample of the first source that runs out. Each epoch begins a pass of every
//   source.
// - reweight: the other sources continue in proportion to their weights, until all sources have run out. An epoch is
//   one pass of all sources.
// - repeat: the source continues with its next pass, even in the middle of an epoch. The start of an epoch does not
//   restart a source. All epochs have the length of the first epoch, which ends with the batch in which the last source
//   completes its first pass. Therefore each sample occurs at least once in the first epoch. `epoch_batches` sets
//   another length.
//
// Weights that change with the position (order/mix_schedule.hpp) require repeat. With stop and reweight, an epoch may
// end with an incomplete batch. If `drop_last` is set, this batch is dropped; otherwise it is short. Rank r of R ranks
// has the positions p with p mod R = r. The order is the same for every R.
// Cost: the mix_cursor of every rank walks all positions, including those of other ranks.
// Errors: setup_error if a source has no sample, or if an epoch has no batch.
// Threads: immutable; any thread may call any member.
#pragma once

#include <millrace/order/exact_order.hpp>
#include <millrace/order/lane_cursor.hpp>
#include <millrace/order/mix_schedule.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of a mix_plan.
struct mix_plan_options {
  std::vector<mix_source_spec> sources{};
  exhausted on_exhausted = exhausted::stop;
  std::size_t lanes = 0;          ///< lanes of each source; 0 selects automatic_lanes()
  bool permutes = true;           ///< if true, a window that covers a source permutes the source uniformly
  std::size_t global_batch = 1;   ///< rows of a batch over all ranks
  bool drop_last = true;          ///< drops a short last batch; used only with stop and reweight
  std::uint64_t epoch_batches = exact_order_options::exact_pass;   ///< values other than exact_pass need repeat
};

class mix_cursor;

/// The order of a mix: maps positions to sources and samples, for all epochs and ranks.
class mix_plan {
 public:
  using options = mix_plan_options;
  using cursor = mix_cursor;

  /// Throws setup_error if a source has no sample, the weights are invalid, or an epoch has no batch.
  explicit mix_plan(options o);

  /// Returns the options, without the sample counts.
  const options& settings() const noexcept { return options_; }
  /// Returns whether a source that runs out repeats.
  bool cycles() const noexcept { return options_.on_exhausted == exhausted::repeat; }
  /// Returns the number of sources.
  std::size_t sources() const noexcept { return sources_.size(); }
  /// Returns the order of one source.
  const exact_order& source(std::size_t i) const noexcept { return sources_[i]; }
  /// Returns the shares of the sources at the start of an epoch. Returns no shares if the mix needs a mix_schedule.
  std::vector<std::uint64_t> shares() const {
    return phases_.empty() ? std::vector<std::uint64_t>{} : phases_.front().pattern.shares();
  }
  /// Returns the sum of the shuffle windows of all sources, in samples. Returns 0 if no source is shuffled.
  std::uint64_t window() const noexcept;
  /// Returns a warning about the first source whose window is too small (exact_order::window_notice()). Returns an
  /// empty string if all windows are large enough.
  std::string window_notice() const;
  /// Returns the number of shards in all sources before `source`.
  std::uint64_t first_shard(std::size_t source) const noexcept { return first_shards_[source]; }
  /// Returns the source that determines the length of an epoch. With stop, this is the first source that runs out. With
  /// reweight, it is the last source that runs out. With repeat, it is the source whose first pass ends last.
  std::size_t measure() const noexcept { return measure_; }

  /// Returns the number of positions in an epoch.
  std::uint64_t positions() const noexcept { return positions_; }
  /// Returns the number of batches in an epoch, including a short last batch.
  std::uint64_t batches() const noexcept;

  /// Returns the number of rows that one rank delivers in batch `batch` of an epoch.
  std::size_t rows(std::uint64_t batch, const world& mine) const noexcept;
  /// Returns the number of samples that drop_last drops at the end of an epoch, because they do not fill a batch.
  std::uint64_t dropped_per_pass() const noexcept { return dropped_; }

  /// Throws setup_error if the world is invalid, or its size does not divide the global batch.
  void check(const world& r) const;

  /// An interval of positions with one pattern. With stop and reweight, an interval ends where a source runs out, and
  /// positions count from the start of the epoch. With repeat, positions count from the start of the run.
  using phase = std::shared_ptr<const mix_phase>;
  /// Returns the phase that contains `at`, a result of ordinal_of(). The last phase has no end.
  phase phase_at(std::uint64_t at) const;
  /// Converts a position to the argument of phase_at(): the position in the epoch or, with repeat, in the run. Throws
  /// setup_error if `position` is after the end of the epoch.
  std::uint64_t ordinal_of(std::uint64_t epoch, std::uint64_t position) const;

  /// Returns, for each source, the number of its samples before this position of the run. `position` may be the end of
  /// the epoch.
  std::vector<std::uint64_t> counts_before(std::uint64_t epoch, std::uint64_t position) const;

  /// Returns, for each source, the number of samples of one rank in the positions [begin, end) of an epoch. With
  /// repeat, `end` may be after the end of the epoch.
  std::vector<std::uint64_t> counts_of(const world& mine, std::uint64_t epoch, std::uint64_t begin,
                                       std::uint64_t end) const;

  /// The location of a position: a source, and an ordinal in the order of this source.
  struct spot {
    std::size_t source = 0;
    std::uint64_t number = 0;   ///< ordinal among all samples that the source delivers in the run
  };
  /// Throws setup_error if the position does not exist.
  spot spot_of(std::uint64_t epoch, std::uint64_t position) const;

  /// Returns the sample at a position. Costs O(shards + window + period of the pattern). For iteration, use a
  /// mix_cursor. Throws setup_error if the position does not exist.
  ordered_sample sample_at(std::uint64_t epoch, std::uint64_t position) const;

 private:
  static constexpr std::uint64_t max_positions = std::uint64_t{1} << 62;

  [[noreturn]] void throw_out_of_range(std::uint64_t position) const;

  /// Returns, for each source, the number of positions from the start of phase `p` until the source runs out.
  std::vector<std::uint64_t> ends_of(const mix_phase& p) const;
  /// Considers the sources of phase `p` with a share above 0. Returns the source that runs out first, and the number of
  /// positions until that event.
  std::pair<std::size_t, std::uint64_t> first_exhausted(const mix_phase& p) const;
  void compute_phases(std::vector<std::uint64_t> shares);
  void set_length();

  options options_;   // without the counts, which sources_ stores
  std::vector<exact_order> sources_;
  std::vector<std::uint64_t> first_shards_;
  std::shared_ptr<const mix_schedule> schedule_;   // null if a mix_pattern suffices
  std::vector<mix_phase> phases_;                  // empty with a schedule
  std::size_t measure_ = 0;
  std::uint64_t positions_ = 0, dropped_ = 0;
};

// Iterates over the positions of one rank in a mix (several sources by weight), starting at any position.
//
// Works like lane_cursor, and has one lane_cursor for each source. A mix_cursor walks all positions, and skips those of
// other ranks. The member `pass` of a sample counts the passes of the sample's source.
// Errors: the errors of lane_cursor. Threads: not thread-safe. Lifetime: the mix_plan must outlive the cursor.

/// Iterates over the samples of one rank in a mix.
class mix_cursor {
 public:
  using options = lane_cursor_options;

  /// Throws setup_error if the world size does not divide the global batch, or the position is after the end of the
  /// epoch.
  explicit mix_cursor(const mix_plan& plan, const options& o = {}) : plan_(&plan), world_(o.world) {
    plan.check(world_);
    for (std::size_t i = 0; i < plan.sources(); ++i) sources_.emplace_back(plan.source(i));
    move_to(o.epoch, o.position);
  }

  /// Moves to the rank's first position at or after `position`. Throws setup_error if `position` is after the end of
  /// the epoch.
  void move_to(std::uint64_t epoch, std::uint64_t position) {
    const std::vector<std::uint64_t> counts = plan_->counts_before(epoch, position);
    for (std::size_t i = 0; i < sources_.size(); ++i) sources_[i].move_to(0, counts[i]);
    epoch_ = epoch;
    walked_ = position;
    ordinal_ = plan_->ordinal_of(epoch, position);
    position_ = position + (world_.rank + world_.size - position % world_.size) % world_.size;
    enter_phase();
  }

  /// Returns the current epoch.
  std::uint64_t epoch() const noexcept { return epoch_; }
  /// Returns the position of the sample that next() returns.
  std::uint64_t position() const noexcept { return position_; }

  /// Returns the next sample of the rank. At the end of the epoch, returns nothing until move_to() is called.
  std::optional<ordered_sample> next() {
    if (position_ >= plan_->positions()) return std::nullopt;
    while (walked_ < position_) static_cast<void>(walk());
    ordered_sample s = walk();
    s.epoch = epoch_;
    s.position = position_;
    position_ += world_.size;
    return s;
  }

 private:
  static constexpr std::size_t many_sources = 64;   // from this number on, the cursors exceed the CPU's cache

  void enter_phase() {
    phase_ = plan_->phase_at(ordinal_);
    in_period_ = (ordinal_ - phase_->begin) % phase_->pattern.period();
    phase_left_ = phase_->end - ordinal_;
  }
  ordered_sample walk() {
    if (phase_left_ == 0) enter_phase();
    const std::size_t source = phase_->pattern.source_at(in_period_);
    if (sources_.size() >= many_sources) {
      sources_[phase_->pattern.source_at(in_period_ + 8)].prefetch();
      sources_[phase_->pattern.source_at(in_period_ + 4)].prefetch_tables();
    }
    if (++in_period_ == phase_->pattern.period()) in_period_ = 0;
    --phase_left_;
    ++walked_;
    ++ordinal_;
    ordered_sample s = *sources_[source].next();
    s.sample.shard += plan_->first_shard(source);
    return s;
  }

  const mix_plan* plan_;
  world world_;
  std::vector<lane_cursor> sources_;
  std::uint64_t epoch_ = 0, position_ = 0;
  // walked_: the next position that walk() visits. ordinal_: the result of mix_plan::ordinal_of() for this position.
  std::uint64_t walked_ = 0, ordinal_ = 0;
  mix_plan::phase phase_;
  std::uint64_t in_period_ = 0, phase_left_ = 0;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/order/impl/mix_plan.inl>
#endif
