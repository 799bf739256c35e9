// What a run without an index remembers to be gone on with: for each batch on its way, where reading would begin again.
//
//   replay_log log(plan, replay_start::sample, false);
//   log.part_begins({.pass = 3, .part = 17, .first = 20'400});              // whoever reads, in order; if `sample`
//   log.batch_ends({.pass = 3, .place = 21'000, .rows_of_place = 1, ...});    // the last segment, in order
//   replay_point p = log.take();                                            // the trainer, once for each batch
//
// The earlier the point, the less it needs to know: from the sample that the last row was made of (flows whose stages
// hold nothing back), from the beginning of its pass (stages that are empty then), or from the run's beginning. Samples
// move by less than the shuffle window, so those of a part that lies further back have all come.
// Memory: an entry for each batch between the last segment's entrance and the trainer, and for each part not yet behind
// them. Threads: any; what is told in order comes from one thread at a time.
#pragma once

#include <millrace/item/position.hpp>
#include <millrace/order/plan.hpp>
#include <millrace/sync/fifo.hpp>

#include <cstdint>
#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI {

/// Where a flow can be entered: what its stages hold is empty there.
enum class replay_start { sample, pass, run };

/// A template only so that including it costs little.
template <class = void>
class basic_replay_log {
 public:
  struct part_begin {
    std::uint64_t pass = 0;
    std::uint64_t part = 0;    ///< in the pass's order
    std::uint64_t first = 0;   ///< number of its first sample in the pass
  };
  /// The last row of a batch, and what there was up to it.
  struct batch_end {
    std::uint64_t pass = 0, place = 0;   ///< of the sample that it was made of
    std::uint64_t rows_of_place = 0;     ///< made of that sample
    std::uint64_t rows_of_pass = 0;
    std::uint64_t rows_of_run = 0;
    std::uint64_t held = 0;              ///< by a packing stage when that sample came
    bool ends_pass = false;              ///< nothing of its pass follows
  };

  /// `in_lanes`: places are those of several lanes together (read/lane_intake.hpp), where parts have no one order.
  basic_replay_log(const plan& order, replay_start from, bool in_lanes)
      : plan_(order), from_(from), in_lanes_(in_lanes) {}

  void part_begins(const part_begin& p) {
    const std::lock_guard lock(mutex_);
    parts_.push(part_begin(p));
  }
  void batch_ends(const batch_end& b) {
    const std::lock_guard lock(mutex_);
    batches_.push(batch_end(b));
  }

  /// Of the next batch in order, which has ended.
  replay_point take() {
    const std::lock_guard lock(mutex_);
    const batch_end b = batches_.pop();
    if (from_ == replay_start::run) return {.rows = b.rows_of_run};
    if (in_lanes_) return {.place = b.place, .rows = b.rows_of_place, .held = b.held};
    if (b.ends_pass) return {.pass = b.pass + 1};
    if (from_ == replay_start::pass) return {.pass = b.pass, .rows = b.rows_of_pass};
    forget_parts_before(b.pass, plan_.first_needed_for(b.place));
    const part_begin& needed = parts_[0];
    return {.pass = b.pass, .place = b.place, .rows = b.rows_of_place, .part = needed.part, .first = needed.first,
            .held = b.held};
  }

 private:
  void forget_parts_before(std::uint64_t pass, std::uint64_t sample) {
    while (parts_.size() > 1 && (parts_[1].pass < pass || (parts_[1].pass == pass && parts_[1].first <= sample)))
      parts_.pop();
  }

  const plan plan_;
  const replay_start from_;
  const bool in_lanes_;
  std::mutex mutex_;
  fifo<part_begin> parts_;
  fifo<batch_end> batches_;
};
using replay_log = basic_replay_log<>;

}}  // namespace millrace
