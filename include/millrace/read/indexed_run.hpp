// A run over an indexed data set: its plan, the source that intake reads, and where each batch stands in it.
//
//   indexed_run run(data, {.seed = 7, .window = 8192, .rows = 256, .world = mine, .resume = text, .epochs = 90});
//   run.source();  run.shards();            // what intake reads, and in which order
//   run.deliver(batch);                    // takes account of it, and gives the resume point behind it
//   run.explain(epoch, position);          // shard, key and offset of the sample that lies there
//
// An epoch is an exact pass, or a fixed number of batches, or endless (order/exact_order.hpp). The digest in the resume
// point is this rank's share: rank 0 goes on from that of the text, the others begin at 0, so that the ranks' sum is
// right.
// Errors: setup_error for ranks, lanes and resume points that do not fit, data_error for a text that is none,
// conservation_error from deliver() and finish(). Threads: these two by the trainer, all else by any.
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

namespace millrace { inline namespace MILLRACE_ABI {

/// The order of a data set. One that is ordered otherwise has an overload beside it.
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
                 .samples_per_shard = samples_at_once(o, *data_)}),
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
                                   .most_held_bytes = o.most_held_bytes});
    if (o.epoch_batches == exact_order_options::endless && o.epochs > 1)
      throw setup_error("an endless epoch is followed by none, and there shall be " + std::to_string(o.epochs),
                        "Use session_options{.epochs = 1, .epoch_batches = endless}, or a number of batches");
    if (start_.epoch >= o.epochs)
      throw setup_error("the run is over: its resume point is the end of epoch " + std::to_string(start_.epoch) +
                            " of " + std::to_string(o.epochs),
                        "Raise session_options::epochs to go on, which counts from the first start");
  }

  const source_type& source() const noexcept { return source_; }
  /// The plan of the source's parts: one after the other.
  const shard_order& shards() const noexcept { return shards_; }
  const position& start() const noexcept { return start_; }
  const world& own_ranks() const noexcept { return world_; }
  /// Of samples that lie beside others whose turn came sooner, at most.
  std::size_t held_bytes() const noexcept { return held_bytes_; }
  /// Batches of the run before the session's first one.
  std::uint64_t first_step() const noexcept {
    return start_.epoch * plan_.batches() + start_.next_position / plan_.settings().global_batch;
  }
  /// Which sample lies at a position of all ranks together, and where it comes from.
  error_location locate(std::uint64_t epoch, std::uint64_t at) const {
    error_location found = data_->place_of(plan_.sample_at(epoch, at).sample);
    found.position = at;
    return found;
  }
  const plan_type& order() const noexcept { return plan_; }
  const Data& data() const noexcept { return *data_; }
  /// Rows that all ranks together have in the session's batch of that number.
  std::size_t global_rows(std::uint64_t batch) const noexcept {
    return plan_.rows((first_step() + batch) % plan_.batches(), {});
  }
  /// As observed so far, and as it was to be expected: some ten milliseconds the first time.
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
  /// What to say about a poor shuffle, with the window that would help; nothing of a good one, nor twice in a run.
  std::string mixing_advice() const {
    if constexpr (!source_type::observes) return {};
    else return lane_mixing_advice();
  }

  /// What to say in a line of its own; nothing if all is well.
  std::string notice() const {
    std::string text;
    if constexpr (requires { data_->notice(); }) text = data_->notice();
    if (!start_.is_share() || world_.rank > 0) return text;   // one rank says it for all
    if (!text.empty()) text += "\nmillrace: ";
    return text + "the resume point's digest is not that of the run: got the share of one of " +
           std::to_string(start_.share.ranks) +
           " ranks, expected the sum of all. Order and samples are right; the digests from here on mean nothing. Sum "
           "position().digest over the ranks before to_text()";
  }

  position deliver(const ready_batch& batch) {
    account_.deliver(batch);
    position next = after(batch.batch);
    next.digest = account_.digest();
    // As long as the others had nothing, the first rank's digest is the run's.
    others_rows_ += global_rows(batch.batch) - batch.rows;
    next.share = digest_share{.digest = next.digest,
                  .ranks = others_rows_ > 0 ? static_cast<std::uint32_t>(world_.size) : 0};
    return next;
  }
  /// No more batches come.
  void finish() const { account_.finish(); }
  const delivery_account& account() const noexcept { return account_; }

  /// Where the run goes on behind the session's batch of that number, but for the digest.
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
  std::uint64_t others_rows_ = 0;   // that other ranks were given meanwhile
  mutable std::once_flag forecast_once_;
  mutable double expected_share_ = 0, ideal_share_ = 0;
  std::size_t held_bytes_ = 0;
};

}}  // namespace millrace
