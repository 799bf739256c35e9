// A run over an indexed data set. Computes its order, its source for the read stage, and the resume point after each
// batch.
//
//   mr::detail::indexed_run<mr::detail::shard_data> run(
//       data, {.seed = 7, .window = 8192, .rows = 256, .world = mine, .resume = text, .epochs = 90});
//   auto stage = run.read(source, options, sink);      // the read stage, positioned at the start of the run
//   run.account_for(batch).next;                       // counts the batch, and returns the resume point after it
//   run.locate(epoch, position);                       // shard, key and offset of the sample at that position
//
// An epoch is an exact pass, a fixed number of batches, or endless (order/exact_order.hpp).
// The digest of a run (a checksum of the delivered data) is the sum of the digests of all ranks. In a resumed run, rank
// 0 continues from the digest in the resume text, and all other ranks begin at 0.
// Errors:
// - setup_error if the number of ranks or the resume point does not match the run
// - setup_error if the last batch of an epoch has fewer rows than there are ranks, and allow_empty is not set
// - data_error for a text that is not a resume point
// - conservation_error from account_for() and finish()
//
// Threads: the trainer (the thread that calls next()) calls account_for() and finish(). Any thread may call everything
// else.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/position.hpp>
#include <millrace/order/shard_order.hpp>
#include <millrace/read/run/indexed_run_options.hpp>
#include <millrace/read/run/indexed_source.hpp>
#include <millrace/read/run/planned_run.hpp>
#include <millrace/read/stage/shard_read_stage.hpp>
#include <millrace/sync/batch_ring.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Sums up the digest (checksum of the delivered samples) of one rank, and checks that each epoch is complete.
//
// Law of conservation: at the end of each epoch, delivered + damaged + dropped_last = planned, in samples of this rank.
// A sample counts as damaged if its row contains a copy of another row, or zeros. The law is not checked for an endless
// epoch.
// Errors: conservation_error with the actual and the planned sum. Threads: not thread-safe, but any thread may call
// digest() and dropped().

/// The start of the account, and the planned numbers of each epoch for this rank.
struct delivery_account_options {
  std::uint64_t epoch = 0, batch = 0;   ///< epoch and batch at which the account starts
  std::uint64_t batches = 0;            ///< batches of an epoch
  std::uint64_t rows = 0;               ///< samples of this rank that an epoch delivers
  std::uint64_t dropped = 0;            ///< samples of this rank that an epoch drops with its last batch
  std::uint64_t delivered = 0;          ///< samples of the first epoch that earlier sessions delivered on this rank
  std::uint64_t digest = 0;             ///< initial value of digest()
};

/// Checks the law of conservation at the end of each epoch, and sums up the digest.
class delivery_account {
 public:
  using options = delivery_account_options;

  explicit delivery_account(const options& o)
      : options_(o), epoch_(o.epoch), batch_(o.batch), delivered_(o.delivered), digest_(o.digest) {}

  /// Adds the next batch. Throws conservation_error if the batch has the wrong epoch, or ends an epoch with missing
  /// samples.
  void deliver(const ready_batch& b) {
    if (b.epoch != epoch_) throw violation("delivered");   // the epoch ended too early or too late
    delivered_ += b.rows - b.damaged.size();
    damaged_ += b.damaged.size();
    if (++batch_ == options_.batches) end_epoch();
    digest_.store(digest() + b.digest, std::memory_order_relaxed);
  }
  /// Completes the account after the last batch. Throws conservation_error if an epoch is incomplete.
  void finish() const {
    if (batch_ > 0) throw violation("was interrupted by the end of the run: it delivered");
  }

  /// Returns this rank's part of the run's digest so far. The part is a sum that may wrap around.
  std::uint64_t digest() const noexcept { return digest_.load(std::memory_order_relaxed); }
  /// Returns how many samples of this rank have been dropped at epoch ends so far.
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  void end_epoch() {
    if (delivered_ + damaged_ != options_.rows) throw violation("delivered");
    dropped_.store(dropped() + options_.dropped, std::memory_order_relaxed);
    delivered_ = damaged_ = 0;
    batch_ = 0;
    ++epoch_;
  }
  MILLRACE_RARE conservation_error violation(const std::string& did) const {
    const std::string dropped = std::to_string(options_.dropped);
    return {"epoch " + std::to_string(epoch_) + " " + did + " " + std::to_string(delivered_) + " samples in " +
                std::to_string(batch_) + " batches, " + (damaged_ > 0 ? std::to_string(damaged_) + " damaged, " : "") +
                dropped + " dropped (" + std::to_string(delivered_ + damaged_ + options_.dropped) +
                " in total): expected " + std::to_string(options_.rows) + " in " + std::to_string(options_.batches) +
                " batches, " + dropped + " dropped (" + std::to_string(options_.rows + options_.dropped) +
                " in total on this rank)",
            "Correct the source: it delivered fewer or more samples than it counts, so all later samples have wrong "
            "positions"};
  }

  const options options_;
  std::uint64_t epoch_, batch_, delivered_, damaged_ = 0;
  std::atomic<std::uint64_t> digest_, dropped_{0};
};

// Determines which version of the order an indexed run has. A resumed run uses the version of its resume point. A new
// run uses the current version.
//
// item/position.hpp describes the versions.
// Errors: data_error for a text that is not a resume point. Threads: pure functions; any thread.

/// The settings of an order that may depend on the resume point.
struct run_order_rule {
  std::size_t lanes = 0;                             ///< number of lanes; 0 selects automatic_lanes()
  bool permutes = true;                              ///< exact_order_options::permutes
  std::uint32_t version = position::index_version;   ///< version of the run's resume points
};

/// Returns the rule for a run with these options.
inline run_order_rule run_order_rule_of(const indexed_run_options& o) {
  // A larger number of lanes in the resume text is ignored, because each lane uses memory.
  constexpr std::uint32_t max_lanes = 1 << 16;
  run_order_rule rule{.lanes = o.lanes};
  if (o.resume.empty()) return rule;
  const position from = parse_position(o.resume);
  if (from.version == position::older_index_version) {
    rule.permutes = false;
    rule.version = from.version;
  }
  if (o.lanes == 0 && from.lanes <= max_lanes) rule.lanes = from.lanes;
  return rule;
}

/// Returns the order of a data set. Data sets with another kind of order have an overload (mixed_data.hpp).
template <class Data>
exact_order plan_of(const Data& data, const indexed_run_options& o) {
  const run_order_rule rule = run_order_rule_of(o);
  return exact_order({.seed = o.seed,
                      .counts = data.counts(),
                      .shuffled = o.window > 0,
                      .window = o.window,
                      .lanes = rule.lanes,
                      .global_batch = o.global_batch(),
                      .drop_last = o.drop_last,
                      .permutes = rule.permutes,
                      .epoch_batches = o.epoch_batches});
}

/// The run of a session over an indexed data set.
template <class Data>
class indexed_run final : public planned_run {
 public:
  using options = indexed_run_options;
  using plan_type = decltype(plan_of(std::declval<const Data&>(), std::declval<const options&>()));
  using source_type = indexed_source<Data, plan_type>;

  indexed_run(std::shared_ptr<Data> data, const options& o);
  MILLRACE_RARE ~indexed_run() override = default;

  /// Returns the data set.
  const std::shared_ptr<Data>& data() const noexcept { return data_; }
  /// Returns the order.
  const plan_type& plan() const noexcept { return plan_; }
  /// Returns the stage that reads the samples in the order of the run. Only the type of the first argument is used.
  template <class Source>
  owner<read_stage> read(const Source&, shard_read_stage_options o, sample_sink<typename Data::item>& next);
  /// Returns the maximum memory for samples that are not requested yet. Such samples are read early, in one block with
  /// a requested sample.
  std::size_t held_bytes() const noexcept override { return held_bytes_; }
  /// Returns shard, key and offset of the sample at position `at` of epoch `epoch`. `at` counts the rows of all ranks.
  error_location locate(std::uint64_t epoch, std::uint64_t at) const override;
  /// Returns the observed and the expected shuffle quality. The first call costs about 10 ms.
  MILLRACE_RARE shuffle_statistics shuffle_quality() const override {
    if constexpr (!source_type::observes) {
      return planned_run::shuffle_quality();
    } else {
      std::call_once(forecast_once_, [&] {
        const shuffle_forecast ahead(plan_, world_);
        expected_share_ = ahead.share();
        ideal_share_ = ahead.ideal_share();
      });
      shuffle_statistics f = source_.shuffle_quality();
      f.expected_share = expected_share_;
      f.ideal_share = ideal_share_;
      return f;
    }
  }
  /// Returns advice about a poor shuffle, with a better window. Returns "" if the shuffle is good, if the run was
  /// resumed, and on all ranks except 0.
  std::string shuffle_advice() const override;
  /// Returns the data set's description of its order, or "" if it has no description.
  std::string describe() const override;

  /// Returns warnings about the data set and the resume point.
  std::vector<notice> notices() const override;

  /// Counts the next batch. Returns its step, its number of rows on all ranks, and the resume point after it. Throws
  /// conservation_error if the batch has the wrong epoch, or ends an epoch with missing samples.
  batch_origin account_for(ready_batch& b) override;
  /// Call it after the last batch. Throws conservation_error if an epoch is incomplete.
  void finish() override { account_.finish(); }
  batch_numbers numbers() const override {
    const std::size_t rows = plan_.settings().global_batch;
    return {.first_epoch = start_.epoch,
            .first_batch = start_.next_position / rows,
            .epoch_batches = plan_.batches(),
            .rows = rows / world_.size,
            .mine = world_,
            .stride = start_.stride};
  }
  std::string order_text() const override;
  /// Sets the following members of `s`: the digest, the samples dropped at the ends of epochs, and the samples of each
  /// source of a mix.
  void add_to(run_stats& s) const override;
  /// Adds the events of loading or building the indexes.
  void report(event_counts& counts) const override {
    if constexpr (requires { data_->report(counts); }) data_->report(counts);
  }

  /// Returns the resume point after batch `batch` of the session (from 0). Its digest is the digest at the start of the
  /// session.
  position after(std::uint64_t batch) const noexcept;

 private:
  /// Returns the number of batches of the run before the session's first batch.
  std::uint64_t first_step() const noexcept;
  MILLRACE_RARE std::string lane_advice() const
    requires source_type::observes
  {
    // If each shard has only one sample, a batch cannot contain several samples of a shard.
    if (plan_.samples() == plan_.settings().counts.size()) return {};
    if (!plan_.settings().shuffled || world_.rank > 0 || start_.epoch > 0 || start_.next_position > 0) return {};
    const shuffle_forecast ahead(plan_);
    const double share = ahead.share(), ideal = ahead.ideal_share();
    if (share <= 2 * ideal) return {};
    char shares[128];
    std::snprintf(shares, sizeof shares, "%.2g %% of a batch are from one shard, %.2g %% after a complete shuffle",
                  100 * share, 100 * ideal);
    const auto window = ahead.window_within(0.10);
    return "; shuffle quality: " + std::string(shares) +
           (window ? "; a window of " + std::to_string(*window) + " is within 10 % of that" : "");
  }

  position start_of(const options& o, std::uint64_t data_set);
  /// Returns the start of a resumed run whose data set has grown: the beginning of the next epoch.
  position start_of_grown(const position& from, position now) const;
  std::string resumed() const;
  void check_last_batch(const options& o) const;
  static std::uint64_t total_samples(const Data& data);
  static std::uint64_t samples_at_once(const options& o, const Data& data);

  const std::shared_ptr<Data> data_;
  const world world_;
  const plan_type plan_;
  std::optional<position> smaller_{};   // the resume point, if it is from a run over fewer samples
  const position start_;
  const source_type source_;
  const shard_order shards_;
  delivery_account account_;
  std::uint64_t others_rows_ = 0;   // rows on other ranks, in this session's global batches
  mutable std::once_flag forecast_once_;
  mutable double expected_share_ = 0, ideal_share_ = 0;
  std::size_t held_bytes_ = 0;
};

}}}   // namespace millrace::detail

#include <millrace/read/run/indexed_run.tpl.hpp>
