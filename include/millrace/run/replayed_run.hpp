// A run over a source without an index: where its batches stand, and how it goes on behind one of them.
//
//   replayed_run run({.order = plan, .data_set = fingerprint_of(source), .rows = 256, .resume = text, .epochs = 90});
//   run.read_from(intake_options);  run.borders();     // for whoever reads, and for the last segment
//   run.after(batch);                                  // the resume point behind a batch, once for each, in order
//
// Nobody has counted the samples, so a position says nothing by itself: the resume point names a place in the source
// where reading begins again (run/replay_log.hpp). From there on everything runs as it did, and the rows that were
// delivered before are dropped. A flow of maps, filters and parallel expansions reads again what the shuffle window
// spans; one whose stages hold something, the pass from its beginning; what can only be entered at the very beginning,
// the run.
// Errors: setup_error for another run's resume point, and for the end of the run; data_error for a text that is none.
// Threads: after() by the trainer; the rest is immutable.
#pragma once

#include <millrace/base/digest.hpp>
#include <millrace/base/error.hpp>
#include <millrace/run/intake.hpp>
#include <millrace/run/ticket_input.hpp>

#include <memory>
#include <string>

namespace millrace::inline MILLRACE_ABI {

/// Of the names and sizes of the parts, as far as the source says them, and of their number.
template <class Source>
std::uint64_t fingerprint_of(const Source& source) {
  std::uint64_t sum = source.parts();
  for (std::size_t i = 0; i < source.parts(); ++i) {
    if constexpr (requires { source.part_name(i); }) {
      const std::string path = source.part_name(i), name = path.substr(path.rfind('/') + 1);
      sum = combine_keys(sum, digest_bytes(std::as_bytes(std::span(name))));
    }
    if constexpr (requires { source.part_bytes(i); }) sum = combine_keys(sum, source.part_bytes(i));
  }
  return sum;
}

struct replayed_run_options {
  plan::options order{};
  std::uint64_t data_set = 0;
  std::size_t rows = 1;
  bool drop_last = true;
  std::string resume{};
  std::uint64_t epochs = 1, epoch_batches = 0;
  replay_start from = replay_start::sample;
};

class replayed_run {
 public:
  using options = replayed_run_options;

  explicit replayed_run(const options& o)
      : options_(o),
        order_(o.order),
        start_(start_of(o)),
        now_(start_),
        log_(std::make_unique<replay_log>(order_, o.from)) {}

  const plan& order() const noexcept { return order_; }
  const position& start() const noexcept { return start_; }
  std::uint64_t first_step() const noexcept { return start_.step; }

  void read_from(intake_options& o) const {
    const replay_point& r = start_.replay;
    if (options_.epoch_batches > 0) o.epochs = ~std::uint64_t{0};
    o.first_epoch = r.pass;
    o.first_part = static_cast<std::size_t>(r.part);
    o.first_sample = r.first;
    o.first_place = r.place;
    if (options_.from == replay_start::sample) o.log = log_.get();
  }
  batch_borders borders() const {
    return {.first_step = start_.step,
            .skipped_rows = start_.replay.rows,
            .epoch_batches = options_.epoch_batches,
            .end_step = end_step(options_),
            .log = log_.get()};
  }

  /// The epoch of a batch, where `pass` is that of its first sample.
  std::uint64_t epoch_of(std::uint64_t batch, std::uint64_t pass) const noexcept {
    return options_.epoch_batches > 0 ? (start_.step + batch) / options_.epoch_batches : pass;
  }
  position after(const ready_batch& batch) {
    now_.replay = log_->take();
    ++now_.step;
    if (options_.epoch_batches > 0) {
      now_.epoch = now_.step / options_.epoch_batches;
      now_.next_position = now_.step % options_.epoch_batches * now_.global_batch;
    } else if (batch.rows < options_.rows) {
      now_.epoch = batch.epoch + 1;   // only an epoch's last batch is short
      now_.next_position = 0;
    } else {
      now_.next_position = (batch.epoch == now_.epoch ? now_.next_position : 0) + now_.global_batch;
      now_.epoch = batch.epoch;
    }
    return now_;
  }

  /// What a session that goes on does first; empty for one that starts.
  std::string describe() const {
    const replay_point& r = start_.replay;
    if (start_.step == 0) return {};
    std::string text = "; goes on behind batch " + std::to_string(start_.step) +
                       " of the run and, having no index, reads";
    if (options_.from == replay_start::run) return text + " again from the run's beginning, " + rows_text(r.rows);
    if (options_.from == replay_start::pass)
      return text + " pass " + std::to_string(r.pass) + " again from its beginning, " + rows_text(r.rows);
    return text + " again from part " + std::to_string(r.part + 1) + " of the " +
           std::to_string(order_.settings().parts) + " in pass " + std::to_string(r.pass) + ", " +
           std::to_string(r.place - r.first) + " samples";
  }

 private:
  static std::string rows_text(std::uint64_t rows) { return std::to_string(rows) + " rows"; }

  static std::uint64_t end_step(const options& o) noexcept {
    if (o.epoch_batches == 0 || o.epochs > ~std::uint64_t{0} / o.epoch_batches) return slots::unknown;
    return o.epochs * o.epoch_batches;
  }

  static position start_of(const options& o) {
    const position now{.version = position::replay_version,
                       .seed = o.order.seed,
                       .lanes = 1,
                       .window = o.order.shuffled ? o.order.window : 0,
                       .global_batch = o.rows,
                       .epoch_batches = o.epoch_batches,
                       .drop_last = o.drop_last,
                       .data_set = o.data_set};
    if (o.resume.empty()) return now;
    const position from = parse_position(o.resume);
    check_same(from, now);
    const replay_point& r = from.replay;
    if (r.part >= o.order.parts || r.first > r.place || from.step == 0)
      throw data_error("the resume point names a place that the source does not have",
                       "Give the text that batch::position() gave");
    const bool fits = o.from == replay_start::sample ||
                      (r.place == 0 && r.part == 0 && (o.from == replay_start::pass || r.pass == 0));
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
  const plan order_;
  const position start_;
  position now_;   // behind the last batch delivered
  const std::unique_ptr<replay_log> log_;
};

}  // namespace millrace::inline MILLRACE_ABI
