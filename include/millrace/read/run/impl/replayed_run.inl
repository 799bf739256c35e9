// Definitions for replayed_run.hpp.
#pragma once

#include <millrace/read/run/replayed_run.hpp>

#include <millrace/order/exact_order.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE replayed_run::replayed_run(const options& o)
    : options_(checked(o)),
      lanes_(lanes_of(options_)),   // requires options_ from checked(), which considers the order of the resume point
      order_(options_.order),
      from_(lanes_ > 1 && o.from == replay_start::pass ? replay_start::run : o.from),
      start_(start_of_run()),
      now_(start_),
      log_(make_owner<replay_log>(order_, from_, lanes_ > 1)) {}

MILLRACE_RARE batch_boundaries replayed_run::boundaries() const {
  return {.first_step = start_.step,
          .skipped_rows = start_.replay.rows,
          .buffered_tokens = start_.replay.held,
          .epoch_batches = options_.epoch_batches,
          .end_step = end_step(options_),
          .log = log_.get()};
}

MILLRACE_RARE batch_numbers replayed_run::numbers() const {
  return {.first_epoch = start_.epoch,
          .first_batch = start_.next_position / start_.global_batch,
          .epoch_batches = options_.epoch_batches,
          .rows = options_.rows,
          .mine = options_.world,
          .stride = start_.stride};
}

MILLRACE_RARE std::size_t replayed_run::global_rows(std::size_t rows) const noexcept {
  const std::size_t world_size = options_.world.size;
  return options_.buckets && world_size > 1 ? ~std::size_t{0} : rows * world_size;
}

MILLRACE_RARE batch_origin replayed_run::account_for(ready_batch& b) {
  if (options_.epoch_batches > 0) b.epoch = (start_.step + b.batch) / options_.epoch_batches;
  if (b.error) return {};
  return {.first_step = start_.step, .global_rows = global_rows(b.rows), .next = after(b)};
}

MILLRACE_RARE position replayed_run::after(const ready_batch& batch) {
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

MILLRACE_RARE std::string replayed_run::describe() const {
  std::string text;
  if (lanes_ > 1) text = "; " + std::to_string(lanes_) + " lanes";
  if (options_.world.size > 1)
    text += "; the ranks may be in different passes, because their numbers of samples differ (with an index the "
            "numbers are equal)";
  if (withholds() && start_.replay.ordinal < options_.order.window)
    text += "; the first batch waits for " + std::to_string(window()) +
            " samples (the shuffle window), or for the end of the pass";
  return text;
}

MILLRACE_RARE std::string replayed_run::resumed() const {
  const replay_point& r = start_.replay;
  const std::string text = "the run continues after its batch " + std::to_string(start_.step) +
                           " and, without an index, ";
  if (from_ == replay_start::run)
    return text + "reads " + std::to_string(r.rows) + " rows again, from the beginning of the run";
  if (lanes_ > 1) return text + "counted the samples of " + std::to_string(counted_) + " shards to find its position";
  if (from_ == replay_start::pass)
    return text + "reads " + std::to_string(r.rows) + " rows again, from the beginning of pass " +
           std::to_string(r.pass);
  return text + "reads " + std::to_string(r.ordinal - r.first) + " samples again, from shard " +
         std::to_string(r.shard + 1) + " of " + std::to_string(order_.settings().shards) + " in pass " +
         std::to_string(r.pass);
}

MILLRACE_RARE std::vector<notice> replayed_run::notices() const {
  std::vector<notice> all;
  if (!options_.why_streamed.empty())
    all.push_back(
        {.kind = notice_kind::order,
         .severity = notice_severity::info,
         .text = "without an index ranks may have different numbers of samples, and a resumed run reads samples "
                 "again: " +
                 options_.why_streamed});
  if (start_.step > 0) all.push_back({.kind = notice_kind::resume, .text = resumed()});
  if (order_.jitters() && lanes_ > 1 && options_.world.rank == 0) {   // rank 0 warns for all ranks
    const bool of_ranks = lanes_ == options_.world.size;
    all.push_back(
        {.kind = notice_kind::order,
         .severity = notice_severity::info,
         .text = std::string(of_ranks ? "each rank shuffles its own shards" : "each lane is shuffled separately") +
                 ", with a window of " + std::to_string(options_.order.window / lanes_) +
                 " samples, so that no window shuffles all samples together. " +
                 (options_.world.size == 1 ? "Omit session_options::lanes to shuffle all samples together"
                                           : "Use an index to shuffle them together")});
    const std::string_view remedy = of_ranks && !keeps_older_order()
                                        ? "Use a larger shuffle window, because each rank has a share of it"
                                        : remedy_for_lanes(keeps_older_order());
    if (std::string narrow = narrow_window_notice(options_.order.window, lanes_, remedy); !narrow.empty())
      all.push_back({.kind = notice_kind::order, .severity = notice_severity::warning, .text = std::move(narrow)});
  }
  if (resumed_times_ == 0 || options_.times == 0 || resumed_times_ == options_.times) return all;
  const auto digits = [](std::uint32_t times) { return hex(times, 8); };
  all.push_back({.kind = notice_kind::data,
                 .severity = notice_severity::warning,
                 .text = "the modification times of the source's files have changed: got the digest " +
                         digits(options_.times) + ", expected " + digits(resumed_times_) +
                         " (from the resume point). Check that no sample was changed, because without an index a "
                         "change is not detected."});
  return all;
}

MILLRACE_RARE replayed_run::options replayed_run::checked(options o) {
  const world& r = o.world;
  if (!o.resume.empty() && parse_position(o.resume).is_older()) {
    constexpr std::size_t usual_lanes = 48;   // number of lanes in that order
    o.order.permutes = false;
    if (o.max_lanes == 0) o.max_lanes = usual_lanes;
  }
  if (r.size == 0 || r.rank >= r.size)
    throw setup_error("the world is invalid: got " + r.describe(), "Number the ranks from 0 to size - 1");
  if (o.order.shards < r.size)
    throw setup_error(
        "without an index each rank reads its own shards: got " + std::to_string(o.order.shards) +
            (o.order.shards == 1 ? " shard for " : " shards for ") + std::to_string(r.size) +
            " ranks, expected at least one for each",
        "Provide more shards, run fewer ranks, or use shards() over plain tars, with an index. "
        "token_files() and from() of a range with random access also support any number of ranks, but not "
        "with expand, filter, take, pack, bucket, or a shuffle that is not directly after the source");
  if (r.size > 1 && o.epoch_batches == 0)
    throw setup_error("without an index, it is unknown how many samples each of the " + std::to_string(r.size) +
                          " ranks has in one pass",
                      "Set session_options::epoch_batches, or use shards() over plain tars, with an index");
  if (r.size > 1 && o.takes)
    throw setup_error("take() does not support several ranks without an index: it counts from the beginning of each "
                      "pass, and the ranks begin their passes at different steps",
                      "Omit take(), or run one rank");
  const std::size_t lanes = lanes_of(o);
  if (lanes % r.size != 0)
    throw setup_error("the " + std::to_string(lanes) + " lanes are not divisible by " + std::to_string(r.size) +
                          " ranks: without an index, the number of lanes is the largest divisor of "
                          "session_options::lanes = " +
                          std::to_string(o.max_lanes) + " that is at most the number of shards, " +
                          std::to_string(o.order.shards),
                      "Omit session_options::lanes, or choose a number of ranks that divides the number of lanes");
  return o;
}

MILLRACE_RARE std::size_t replayed_run::lanes_of(const options& o) {
  const std::size_t most = o.max_lanes == 0 ? o.world.size : o.max_lanes;
  const bool shared = o.epoch_batches > 0 && (o.one_row || o.world.size > 1);
  std::size_t lanes = shared ? std::min(most, o.order.shards) : 1;
  while (lanes > 1 && most % lanes != 0) --lanes;
  return std::max<std::size_t>(1, lanes);
}

MILLRACE_RARE std::uint64_t replayed_run::end_step(const options& o) noexcept {
  if (o.epoch_batches == 0 || o.epochs > ~std::uint64_t{0} / o.epoch_batches) return batch_ring::unknown;
  return o.epochs * o.epoch_batches;
}

MILLRACE_RARE position replayed_run::start_of_run() {
  const options& o = options_;
  const auto world_size = static_cast<std::uint32_t>(o.world.size);
  const std::optional<position> resumed = o.resume.empty() ? std::nullopt : std::optional(parse_position(o.resume));
  const bool older = resumed && resumed->is_older();
  const position now{
      .version = o.packs ? (older ? position::older_packing_version : position::packing_version)
                         : (older ? position::older_replay_version : position::replay_version),
      .seed = o.order.seed,
      .epoch = resumed ? 0 : o.first_epoch,
      .lanes = static_cast<std::uint32_t>(lanes_),
      .window = o.order.shuffled ? o.order.window : 0,
      .global_batch = o.rows * o.world.size,
      .epoch_batches = o.epoch_batches,
      .drop_last = o.drop_last,
      .data_set = o.data_set,
      .stride = row_stride(
          {.requested = o.stride, .of_resume_point = resumed ? resumed->stride : 0, .rows = o.rows, .mine = o.world}),
      .replay = {.pass = resumed ? 0 : o.first_epoch},
      .ranks = lanes_ == 1 && o.one_row ? 0 : world_size,
      .rank = !o.one_row    ? static_cast<std::uint32_t>(o.world.rank)
              : lanes_ == 1 ? 0
                            : world_size,
      .times = o.times,
      .packing = o.packing,
      .counts = {.shards = o.order.shards}};
  if (o.first_epoch > 0 && (o.epoch_batches > 0 || from_ == replay_start::run))
    throw setup_error(
        std::string(o.epoch_batches > 0 ? "with session_options::epoch_batches, a run over a source without an index"
                                        : "a run over this source and these stages") +
            " cannot skip earlier epochs: got session_options::first_epoch = " + std::to_string(o.first_epoch) +
            ", expected 0",
        "Use a source with an index, or start with epoch 0");
  if (!resumed) return now;
  if (o.grown && resumed->data_set != now.data_set)
    throw setup_error(
        "the run cannot resume: without an index it must read the same data set again, but the "
        "data set has changed",
        "Restore the earlier data set, or start a new run with another seed; session_options::grown requires an index");
  position from = *resumed;
  check_same(from, now);
  from.version = now.version;
  from.packing = now.packing;
  resumed_times_ = std::exchange(from.times, now.times);
  const replay_point& r = from.replay;
  if (r.shard >= o.order.shards || r.first > r.ordinal || from.step == 0)
    throw data_error("the resume point names a position that the source does not have",
                     "Pass the text that batch::resume_text() returned");
  const bool fits = from_ == replay_start::sample ||
                    (r.ordinal == 0 && r.shard == 0 && (from_ == replay_start::pass || r.pass == 0));
  if (!fits)
    throw setup_error("the resume point belongs to a flow with different stages: a stage of this flow buffers items, "
                      "and can only start at the beginning of a pass",
                      "Resume with the flow that wrote the resume point");
  if (o.epoch_batches > 0 ? from.step >= end_step(o) : from.epoch >= o.epochs)
    throw setup_error("the run is over: its resume point is the end of epoch " + std::to_string(from.epoch) + " of " +
                          std::to_string(o.epochs),
                      "Raise session_options::epochs, which includes the epochs before the resume point");
  return from;
}

}}}   // namespace millrace::detail
