// A run over an indexed data set: its order, the source for the read stage, and the resume point behind each batch.
//
//   mr::detail::indexed_run<mr::detail::shard_data> run(
//       data, {.seed = 7, .window = 8192, .rows = 256, .world = mine, .resume = text, .epochs = 90});
//   run.source();  run.shards();            // what the read stage reads, and in which order
//   run.deliver(batch);                     // accounts for the batch; returns the resume point behind it
//   run.locate(epoch, position);            // shard, key and offset of the sample at that position
//
// An epoch is an exact pass, a fixed number of batches, or endless (order/exact_order.hpp).
// The digest in the resume point is this rank's share. Rank 0 continues from the digest of the resume text. All other
// ranks begin at 0, so that the sum over the ranks is right.
// Errors: setup_error for ranks, lanes or a resume point that do not fit; data_error for a text that is not a resume
// point; conservation_error from deliver() and finish().
// Threads: deliver() and finish() by the trainer; everything else by any thread.
#pragma once

#include <millrace/item/position.hpp>
#include <millrace/order/shard_order.hpp>
#include <millrace/read/delivery_account.hpp>
#include <millrace/read/indexed_run_options.hpp>
#include <millrace/read/indexed_source.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the order of a data set. A data set with another kind of order has its own overload (mixed_data.hpp).
template <class Data>
exact_order plan_of(const Data& data, const indexed_run_options& o) {
  return exact_order({.seed = o.seed,
                    .counts = data.counts(),
                    .shuffled = o.window > 0,
                    .window = o.window,
                    .lanes = o.lanes,
                    .global_batch = o.global_batch(),
                    .drop_last = o.drop_last,
                    .epoch_batches = o.epoch_batches});
}

/// Connects an indexed data set with the session that delivers it.
template <class Data>
class indexed_run {
 public:
  using options = indexed_run_options;
  using plan_type = decltype(plan_of(std::declval<const Data&>(), std::declval<const options&>()));
  using source_type = indexed_source<Data, plan_type>;

  indexed_run(std::shared_ptr<Data> data, const options& o)
      : data_(std::move(data)),
        world_(o.world),
        plan_(plan_of(*data_, o)),
        start_(start_of(o, data_->fingerprint())),
        source_(data_, plan_,
                {.world = o.world,
                 .first_epoch = start_.epoch,
                 .first_position = start_.next_position,
                 .samples_per_block = samples_at_once(o, *data_)}),
        shards_({.seed = o.seed, .shards = source_.shards()}),
        account_({.epoch = start_.epoch,
                  .batch = start_.next_position / plan_.settings().global_batch,
                  .batches = plan_.batches(),
                  .rows = exact_order::share(plan_.positions(), world_),
                  .dropped = exact_order::share(plan_.dropped_per_pass(), world_),
                  .delivered = exact_order::share(start_.next_position, world_),
                  .digest = world_.rank == 0 ? start_.digest : 0}) {
    if constexpr (requires { data_->expect({}); })
      held_bytes_ = data_->expect({.window = o.window / world_.size,
                                   .lanes = std::max<std::size_t>(1, o.lanes / world_.size),
                                   .max_held_bytes = o.max_held_bytes});
    if (o.epoch_batches == exact_order_options::endless && o.epochs > 1)
      throw setup_error("epoch_batches = endless allows one epoch, but epochs = " + std::to_string(o.epochs),
                        "Use session_options{.epochs = 1, .epoch_batches = endless}, or a number of batches");
    if (start_.epoch >= o.epochs)
      throw setup_error("the run is over: its resume point is the end of epoch " + std::to_string(start_.epoch) +
                            " of " + std::to_string(o.epochs),
                        "Raise session_options::epochs to go on, which counts from the first start");
  }

  /// Returns the source for the read stage.
  const source_type& source() const noexcept { return source_; }
  /// Returns the order of the shards of source(): as listed.
  const shard_order& shards() const noexcept { return shards_; }
  /// Returns the position at which the session starts.
  const position& start() const noexcept { return start_; }
  /// Returns the rank and the world size of this process.
  const world& own_ranks() const noexcept { return world_; }
  /// Returns the bound on bytes held for samples that are read together with neighbors that come sooner.
  std::size_t held_bytes() const noexcept { return held_bytes_; }
  /// Returns the number of batches of the run before the session's first batch.
  std::uint64_t first_step() const noexcept {
    return start_.epoch * plan_.batches() + start_.next_position / plan_.settings().global_batch;
  }
  /// Returns the origin of the sample at position `at` of epoch `epoch`. Positions count over all ranks together.
  error_location locate(std::uint64_t epoch, std::uint64_t at) const {
    error_location found = data_->location_of(plan_.sample_at(epoch, at).sample);
    found.position = at;
    return found;
  }
  /// Returns the order of the samples.
  const plan_type& order() const noexcept { return plan_; }
  /// Returns the data set.
  const Data& data() const noexcept { return *data_; }
  /// Returns the rows that all ranks together have in the session's batch `batch`, counted from 0.
  std::size_t global_rows(std::uint64_t batch) const noexcept {
    return plan_.rows((first_step() + batch) % plan_.batches(), {});
  }
  /// Returns the observed and the expected shuffle quality. The first call takes some ten milliseconds.
  shuffle_quality_figures shuffle_quality() const
    requires source_type::observes
  {
    std::call_once(forecast_once_, [&] {
      const shuffle_forecast ahead(plan_, world_);
      expected_share_ = ahead.share();
      ideal_share_ = ahead.ideal_share();
    });
    shuffle_quality_figures f = source_.shuffle_quality();
    f.expected_share = expected_share_;
    f.ideal_share = ideal_share_;
    return f;
  }
  /// Returns advice about a poor shuffle, with a window that would help. Returns an empty text if the shuffle is good,
  /// if the run was resumed, and on all ranks but 0: a run gets the advice once.
  std::string shuffle_advice() const {
    if constexpr (!source_type::observes) return {};
    else return lane_mixing_advice();
  }

  /// Returns a warning for a line of its own; empty if all is well.
  std::string notice() const {
    std::string text;
    if constexpr (requires { data_->notice(); }) text = data_->notice();
    if (!start_.is_share() || world_.rank > 0) return text;   // rank 0 warns for all ranks
    if (!text.empty()) text += "\nmillrace: ";
    return text + "the resume point's digest is not that of the run: got the share of one of " +
           std::to_string(start_.share.ranks) +
           " ranks, expected the sum of all. Order and samples are right; the digests from here on mean nothing. Sum "
           "position().digest over the ranks before to_text()";
  }

  /// Accounts for the next batch in order, and returns the resume point behind it.
  /// Throws conservation_error if the batch is of another epoch, or if it ends an epoch that lacks samples.
  position deliver(const ready_batch& batch) {
    account_.deliver(batch);
    position next = after(batch.batch);
    next.digest = account_.digest();
    // While the other ranks have received no rows, the digest of rank 0 is the digest of the run.
    others_rows_ += global_rows(batch.batch) - batch.rows;
    next.share = digest_share{.digest = next.digest,
                  .ranks = others_rows_ > 0 ? static_cast<std::uint32_t>(world_.size) : 0};
    return next;
  }
  /// Tells the run that no more batches come. Throws conservation_error if an epoch is incomplete.
  void finish() const { account_.finish(); }
  /// Returns this rank's account of delivered samples.
  const delivery_account& account() const noexcept { return account_; }

  /// Returns the resume point behind the session's batch `batch`, counted from 0, without its digest.
  position after(std::uint64_t batch) const noexcept {
    const std::uint64_t done = first_step() + batch + 1;
    position p = start_;
    p.epoch = done / plan_.batches();
    p.next_position = done % plan_.batches() * plan_.settings().global_batch;
    return p;
  }

 private:
  std::string lane_mixing_advice() const
    requires source_type::observes
  {
    if (!plan_.settings().shuffled || world_.rank > 0 || start_.epoch > 0 || start_.next_position > 0) return {};
    const shuffle_forecast ahead(plan_);
    const double share = ahead.share(), ideal = ahead.ideal_share();
    if (share <= 2 * ideal) return {};
    char shares[128];
    std::snprintf(shares, sizeof shares, "%.2g %% of a batch come from one shard, %.2g %% after a complete shuffle",
                  100 * share, 100 * ideal);
    const auto window = ahead.window_within(0.10);
    return "; shuffle quality: " + std::string(shares) +
           (window ? "; a window of " + std::to_string(*window) + " comes within 10 % of that" : "");
  }

  position start_of(const options& o, std::uint64_t data_set) const {
    const position now{.seed = o.seed,
                       .lanes = static_cast<std::uint32_t>(o.lanes),
                       .window = plan_.window(),
                       .global_batch = plan_.settings().global_batch,
                       .epoch_batches = o.epoch_batches,
                       .drop_last = o.drop_last,
                       .data_set = data_set};
    if (o.resume.empty()) return now;
    const position from = parse_position(o.resume);
    if constexpr (requires { data_->check_same(from.data_set); }) data_->check_same(from.data_set);
    check_same(from, now);
    if (from.next_position % now.global_batch != 0 || from.next_position >= plan_.positions() ||
        from.next_position > std::uint64_t{1} << 62)
      throw data_error("the resume point stands within a batch, or behind the epoch's last",
                       "Give the text that batch::position() gave");
    return from;
  }

  static std::uint64_t samples_at_once(const options& o, const Data& data) {
    std::uint64_t samples = 0;
    for (const std::uint64_t count : data.counts()) samples += count;
    const std::uint64_t mean_bytes = data.size_bytes() / std::max<std::uint64_t>(1, samples);
    return std::clamp<std::uint64_t>(o.bytes_at_once / std::max<std::uint64_t>(1, mean_bytes), 16, 4096);
  }

  const std::shared_ptr<Data> data_;
  const world world_;
  const plan_type plan_;
  const position start_;
  const source_type source_;
  const shard_order shards_;
  delivery_account account_;
  std::uint64_t others_rows_ = 0;   // rows delivered to other ranks in this session
  mutable std::once_flag forecast_once_;
  mutable double expected_share_ = 0, ideal_share_ = 0;
  std::size_t held_bytes_ = 0;
};

}}}  // namespace millrace::detail
