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
#include <millrace/order/shard_order.hpp>
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
  struct shard_begin {
    std::uint64_t pass = 0;
    std::uint64_t shard = 0;    ///< in the pass's order
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

  /// `in_lanes`: places are those of several lanes together (read/interleaved_read_stage.hpp), where parts have no one
  /// order.
  basic_replay_log(const shard_order& order, replay_start from, bool in_lanes)
      : plan_(order), from_(from), in_lanes_(in_lanes) {}

  void shard_begins(const shard_begin& p) {
    const std::lock_guard lock(mutex_);
    shards_.push(shard_begin(p));
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
    forget_shards_before(b.pass, plan_.first_needed_for(b.place));
    const shard_begin& needed = shards_[0];
    return {.pass = b.pass, .place = b.place, .rows = b.rows_of_place, .shard = needed.shard, .first = needed.first,
            .held = b.held};
  }

 private:
  void forget_shards_before(std::uint64_t pass, std::uint64_t sample) {
    while (shards_.size() > 1 && (shards_[1].pass < pass || (shards_[1].pass == pass && shards_[1].first <= sample)))
      shards_.pop();
  }

  const shard_order plan_;
  const replay_start from_;
  const bool in_lanes_;
  std::mutex mutex_;
  fifo<shard_begin> shards_;
  fifo<batch_end> batches_;
};
using replay_log = basic_replay_log<>;

}}  // namespace millrace
