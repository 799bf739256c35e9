// A run over an indexed data set: its plan, the source that intake reads, and where each batch stands in it.
//
//   planned_run run(data, {.seed = 7, .window = 8192, .rows = 256, .ranks = mine, .resume = text, .epochs = 90});
//   run.source();  run.parts();            // what intake reads, and in which order
//   run.after(batch);                      // the resume point behind the session's batch of that number
//   run.explain(epoch, position);          // shard, key and offset of the sample that lies there
//
// Errors: setup_error for ranks, lanes and resume points that do not fit, data_error for a text that is none.
// Threads: immutable.
#pragma once

#include <millrace/run/plan.hpp>
#include <millrace/run/planned_run_options.hpp>
#include <millrace/run/planned_source.hpp>

#include <algorithm>
#include <memory>
#include <string>

namespace millrace::inline MILLRACE_ABI {

template <class Data>
class planned_run {
 public:
  using options = planned_run_options;
  using source_type = planned_source<Data>;

  planned_run(std::shared_ptr<Data> data, const options& o)
      : data_(std::move(data)),
        ranks_(o.ranks),
        plan_({.seed = o.seed,
               .counts = data_->counts(),
               .shuffled = o.window > 0,
               .window = o.window,
               .lanes = o.lanes,
               .global_batch = o.rows * std::max<std::size_t>(1, o.ranks.world_size),
               .drop_last = o.drop_last}),
        start_(start_of(o, data_->fingerprint())),
        source_(data_, plan_,
                {.ranks = o.ranks,
                 .first_epoch = start_.epoch,
                 .first_position = start_.next_position,
                 .samples_per_part = samples_at_once(o, *data_)}),
        parts_({.seed = o.seed, .parts = source_.parts()}) {
    plan_.check(ranks_);
    held_bytes_ = data_->expect({.window = o.window / ranks_.world_size,
                                 .lanes = std::max<std::size_t>(1, o.lanes / ranks_.world_size),
                                 .most_held_bytes = o.most_held_bytes});
    if (ranks_.world_size > 1 && plan_.positions() % plan_.settings().global_batch != 0)
      throw setup_error("an epoch ends with a batch that not every rank has a share of",
                        "With several ranks use batch({.drop_last = true})");
    if (start_.epoch >= o.epochs)
      throw setup_error("the run is over: its resume point is the end of epoch " + std::to_string(start_.epoch) +
                            " of " + std::to_string(o.epochs),
                        "Raise session_options::epochs to go on, which counts from the first start");
  }

  const source_type& source() const noexcept { return source_; }
  /// The plan of the source's parts: one after the other.
  const plan& parts() const noexcept { return parts_; }
  const position& start() const noexcept { return start_; }
  const ranks& own_ranks() const noexcept { return ranks_; }
  /// Of samples that lie beside others whose turn came sooner, at most.
  std::size_t held_bytes() const noexcept { return held_bytes_; }
  /// Batches of the run before the session's first one.
  std::uint64_t first_step() const noexcept {
    return start_.epoch * plan_.batches() + start_.next_position / plan_.settings().global_batch;
  }
  /// Which sample lies at a position of all ranks together, and where it comes from.
  place explain(std::uint64_t epoch, std::uint64_t at) const {
    place found = data_->place_of(plan_.sample_at(epoch, at).sample);
    found.position = at;
    return found;
  }
  position after(std::uint64_t batch) const noexcept {
    const std::uint64_t done = first_step() + batch + 1;
    position p = start_;
    p.epoch = done / plan_.batches();
    p.next_position = done % plan_.batches() * plan_.settings().global_batch;
    return p;
  }

 private:
  position start_of(const options& o, std::uint64_t data_set) const {
    const position now{.seed = o.seed,
                       .lanes = static_cast<std::uint32_t>(o.lanes),
                       .window = o.window,
                       .global_batch = plan_.settings().global_batch,
                       .drop_last = o.drop_last,
                       .data_set = data_set};
    if (o.resume.empty()) return now;
    const position from = parse_position(o.resume);
    check_same(from, now);
    if (from.next_position % now.global_batch != 0 || from.next_position >= plan_.positions())
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
  const ranks ranks_;
  const lane_plan plan_;
  const position start_;
  const source_type source_;
  const plan parts_;
  std::size_t held_bytes_ = 0;
};

}  // namespace millrace::inline MILLRACE_ABI
