// A run over a source without an index: the resume point behind each batch, and how a session goes on from one.
//
//   mr::detail::replayed_run run({.order = {.seed = 7, .shards = source.shards()},
//                                 .data_set = mr::detail::fingerprint_of(source), .rows = 256, .resume = text,
//                                 .epochs = 90});
//   auto stage = run.read(source, options, sink);      // the read stage, set to its start; run.borders() for the sink
//   run.after(batch);                                  // the resume point behind a batch, once for each, in order
//
// No samples were counted, so a position alone does not say where to read. The resume point therefore names the point
// in the source at which reading begins again (work/replay_log.hpp). From there on everything runs as before, and rows
// that were delivered before are dropped.
// The stages decide how much is read again:
// - Maps, filters and parallel expansions read again what the shuffle window spans.
// - A flow with a stage that holds items back reads the pass again from its beginning.
// - A flow that can only be entered at the very beginning reads the whole run again.
//
// Epochs of a fixed number of batches are read in lanes. Lane l of L owns shards l, l + L, l + 2 L, ... of each pass's
// order. It belongs to rank l mod R of R, and R divides L. Within a rank, no lane begins a pass before all lanes of the
// rank have ended the pass before (read/interleaved_read_stage.hpp). So on one rank every pass is exact.
// On several ranks, pass k of all ranks together holds every sample once. Ranks reach pass k at different times,
// because their shares differ in size. Another number of ranks has another order.
// If each sample is one row, the number of batches says how far the lanes are, once samples are counted. One resume
// point then serves all ranks of the same world size. Otherwise batches hold each rank's own rows, and a resume point
// belongs to one rank.
// Errors: setup_error for ranks that do not fit, a resume point of another run, or a run that is over; data_error for a
// text that is not a resume point.
// Threads: read() and after() by the trainer; everything else is immutable.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/order/world.hpp>
#include <millrace/read/data_identity.hpp>
#include <millrace/read/lane_starts.hpp>
#include <millrace/read/shard_read_stage.hpp>
#include <millrace/work/ticket_input.hpp>

#include <memory>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of one run over a source without an index.
struct replayed_run_options {
  shard_order::options order{};
  std::uint64_t data_set = 0;     ///< fingerprint_of() the source
  std::uint32_t times = 0;        ///< times_of() the source
  std::size_t rows = 1;           ///< rows of a batch of this rank
  bool drop_last = true;
  std::string resume{};           ///< text of the resume point; empty: begin at the start
  std::uint64_t epochs = 1, epoch_batches = 0;   ///< epoch_batches 0: an epoch is a pass
  replay_start from = replay_start::sample;      ///< where the flow can be entered
  bool one_row = true;            ///< each sample makes exactly one row
  std::uint64_t take = ~std::uint64_t{0};   ///< samples to use of each pass
  bool takes = false;             ///< the flow has a take(), at the source or later
  bool packs = false;             ///< a stage holds a state that one number describes (stages/pack.hpp)
  bool buckets = false;           ///< a stage sets the rows of each batch (stages/bucket.hpp)
  detail::world world{};
  std::size_t max_lanes = 48;
};

/// Connects a source without an index with its session.
class replayed_run {
 public:
  using options = replayed_run_options;

  explicit replayed_run(const options& o)
      : options_(checked(o)),
        lanes_(lanes_of(o)),
        order_(o.order),
        from_(lanes_ > 1 && o.from == replay_start::pass ? replay_start::run : o.from),
        start_(start_of_run()),
        now_(start_),
        log_(std::make_unique<replay_log>(order_, from_, lanes_ > 1)) {}

  /// Returns the order of the shards and their samples, before it is split into lanes.
  const shard_order& order() const noexcept { return order_; }
  /// Returns the position at which the session starts.
  const position& start() const noexcept { return start_; }
  /// Returns the number of batches of the run before the session's first batch.
  std::uint64_t first_step() const noexcept { return start_.step; }

  /// Returns this rank's share of the shuffle window, in samples.
  std::size_t window() const noexcept { return options_.order.window / options_.world.size; }

  /// Returns the read stage, which begins where the session has to read first. May count samples, which blocks.
  /// Throws the errors of find_lane_starts().
  template <class Source>
  std::unique_ptr<read_stage> read(const Source& source, shard_read_stage_options o,
                                   sample_sink<typename Source::item>& next) {
    const replay_point& r = start_.replay;
    if (lanes_ > 1) {
      const std::uint64_t ordinal = options_.one_row ? start_.step * options_.rows : r.ordinal;
      lane_starts starts = find_lane_starts(
          source, {.order = order_.settings(), .lanes = lanes_, .world = options_.world, .ordinal = ordinal,
                   .threads = o.threads});
      counted_ = starts.counted;
      return std::make_unique<interleaved_read_stage<Source>>(
          source, interleaved_read_stage_options{.threads = o.threads, .read_ahead_bytes = o.read_ahead_bytes,
                                      .window_bytes = o.window_bytes, .lanes = std::move(starts.lanes),
                                      .turn = starts.turn, .first_ordinal = ordinal}, next);
    }
    if (options_.epoch_batches > 0) o.epochs = ~std::uint64_t{0};
    o.first_epoch = r.pass;
    o.first_shard = static_cast<std::size_t>(r.shard);
    o.first_sample = r.first;
    o.first_ordinal = r.ordinal;
    o.take = options_.take;
    if (from_ == replay_start::sample) o.log = log_.get();
    return std::make_unique<shard_read_stage<Source>>(source, order_, o, next);
  }
  /// Returns where the session starts and where epochs end, for the last segment.
  batch_borders borders() const {
    return {.first_step = start_.step,
            .skipped_rows = start_.replay.rows,
            .held = start_.replay.held,
            .epoch_batches = options_.epoch_batches,
            .end_step = end_step(options_),
            .log = log_.get()};
  }

  /// Returns the epoch of the session's batch `batch`; `pass` is the pass of its first sample.
  std::uint64_t epoch_of(std::uint64_t batch, std::uint64_t pass) const noexcept {
    return options_.epoch_batches > 0 ? (start_.step + batch) / options_.epoch_batches : pass;
  }
  /// Returns the rows of all ranks together for a batch with `rows` on this rank; ~0 if unknown.
  /// Several ranks never have a short batch, except with buckets.
  std::size_t global_rows(std::size_t rows) const noexcept {
    const std::size_t world_size = options_.world.size;
    return options_.buckets && world_size > 1 ? ~std::size_t{0} : rows * world_size;
  }
  /// Returns the resume point behind `batch`. Called once for each batch, in order.
  position after(const ready_batch& batch) {
    const replay_point next = log_->take();
    if (lanes_ == 1 || !options_.one_row) now_.replay = next;
    ++now_.step;
    if (options_.epoch_batches > 0) {
      now_.epoch = now_.step / options_.epoch_batches;
      now_.next_position = now_.step % options_.epoch_batches * now_.global_batch;
    } else if (batch.rows < options_.rows && !options_.buckets) {
      now_.epoch = batch.epoch + 1;   // only the last batch of an epoch is short
      now_.next_position = 0;
    } else {
      now_.next_position = (batch.epoch == now_.epoch ? now_.next_position : 0) + now_.global_batch;
      now_.epoch = batch.epoch;
    }
    return now_;
  }

  /// Returns what a session announces at its start: its lanes, and what it reads again to resume.
  std::string describe() const {
    std::string text;
    if (lanes_ > 1)
      text = "; " + std::to_string(lanes_) + " lanes, " + options_.world.describe();
    if (options_.world.size > 1)
      text += ", whose passes drift apart as their shares of the samples differ (indexed_shards() has even ones)";
    if (start_.step == 0) return text;
    const replay_point& r = start_.replay;
    text += "; goes on behind batch " + std::to_string(start_.step) + " of the run and, having no index, ";
    if (from_ == replay_start::run)
      return text + "reads again from the run's beginning, " + std::to_string(r.rows) + " rows";
    if (lanes_ > 1)
      return text + "has counted the samples of " + std::to_string(counted_) + " shards to find its position";
    if (from_ == replay_start::pass)
      return text + "reads pass " + std::to_string(r.pass) + " again from its beginning, " + std::to_string(r.rows) +
             " rows";
    return text + "reads again from shard " + std::to_string(r.shard + 1) + " of the " +
           std::to_string(order_.settings().shards) + " in pass " + std::to_string(r.pass) + ", " +
           std::to_string(r.ordinal - r.first) + " samples";
  }

  /// Returns a warning for a line of its own; empty if all is well.
  std::string notice() const {
    if (times_then_ == 0 || options_.times == 0 || times_then_ == options_.times) return {};
    const auto digits = [](std::uint32_t times) { return detail::hex(times, 8); };
    return "the times of the source's files were changed: got " + digits(options_.times) + ", expected " +
           digits(times_then_) + " (the resume point). Check that no sample was changed, which is not seen without an "
           "index.";
  }

 private:
  static const options& checked(const options& o) {
    const world& r = o.world;
    if (r.size == 0 || r.rank >= r.size)
      throw setup_error("there is no " + r.describe(), "Ranks count from 0");
    if (r.size > 1 && o.epoch_batches == 0)
      throw setup_error("without an index it is not known how many samples each of " + std::to_string(r.size) +
                            " ranks would get from one pass",
                        "Set session_options::epoch_batches, or use indexed_shards() of "
                        "millrace/sources/indexed_shards.hpp, which needs plain tar shards");
    if (r.size > 1 && o.takes)
      throw setup_error("take() counts from the beginning of each pass, and several ranks without an index have none",
                        "Leave out take(), or run one rank");
    const std::size_t lanes = lanes_of(o);
    if (lanes % r.size != 0)
      throw setup_error(std::to_string(r.size) + " ranks do not divide the " + std::to_string(lanes) +
                            " lanes: session_options::lanes asks for " + std::to_string(o.max_lanes) +
                            ", and the source has " + std::to_string(o.order.shards) + " shards",
                        "Choose a number of ranks that divides the lanes, or have more shards");
    return o;
  }

  /// Returns `max_lanes`. With fewer shards, returns the greatest divisor of it that leaves each lane a shard.
  /// Returns 1 if the run needs no lanes.
  static std::size_t lanes_of(const options& o) {
    const bool shared = o.epoch_batches > 0 && (o.one_row || o.world.size > 1);
    std::size_t lanes = shared ? std::min(o.max_lanes, o.order.shards) : 1;
    while (lanes > 1 && o.max_lanes % lanes != 0) --lanes;
    return std::max<std::size_t>(1, lanes);
  }

  static std::uint64_t end_step(const options& o) noexcept {
    if (o.epoch_batches == 0 || o.epochs > ~std::uint64_t{0} / o.epoch_batches) return batch_ring::unknown;
    return o.epochs * o.epoch_batches;
  }

  position start_of_run() {
    const options& o = options_;
    const auto world_size = static_cast<std::uint32_t>(o.world.size);
    const position now{.version = o.packs ? position::packing_version : position::replay_version,
                       .seed = o.order.seed,
                       .lanes = static_cast<std::uint32_t>(lanes_),
                       .window = o.order.shuffled ? o.order.window : 0,
                       .global_batch = o.rows * o.world.size,
                       .epoch_batches = o.epoch_batches,
                       .drop_last = o.drop_last,
                       .data_set = o.data_set,
                       .ranks = lanes_ == 1 && o.one_row ? 0 : world_size,
                       .rank = !o.one_row    ? static_cast<std::uint32_t>(o.world.rank)
                               : lanes_ == 1 ? 0
                                             : world_size,
                       .times = o.times};
    if (o.resume.empty()) return now;
    position from = parse_position(o.resume);
    check_same(from, now);
    from.version = now.version;
    times_then_ = std::exchange(from.times, now.times);
    const replay_point& r = from.replay;
    if (r.shard >= o.order.shards || r.first > r.ordinal || from.step == 0)
      throw data_error("the resume point names a place that the source does not have",
                       "Give the text that batch::position() gave");
    const bool fits = from_ == replay_start::sample ||
                      (r.ordinal == 0 && r.shard == 0 && (from_ == replay_start::pass || r.pass == 0));
    if (!fits)
      throw setup_error("the resume point is of a flow with other stages: this one holds back items, and has to be "
                        "entered at the beginning of a pass",
                        "Resume with the flow that wrote it");
    if (o.epoch_batches > 0 ? from.step >= end_step(o) : from.epoch >= o.epochs)
      throw setup_error("the run is over: its resume point is the end of epoch " + std::to_string(from.epoch) + " of " +
                            std::to_string(o.epochs),
                        "Raise session_options::epochs to go on, which counts from the first start");
    return from;
  }

  const options options_;
  const std::size_t lanes_;   // lanes of all ranks together; 1: one sequence, with borders between passes
  const shard_order order_;
  const replay_start from_;
  std::uint32_t times_then_ = 0;   // hash of file times in the resume point; 0: unknown
  const position start_;
  position now_;   // resume point behind the last delivered batch
  const std::unique_ptr<replay_log> log_;
  std::uint64_t counted_ = 0;   // shards that were read through to count their samples
};

}}}  // namespace millrace::detail
