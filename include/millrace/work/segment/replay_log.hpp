// Records the resume points of a run without an index. For each batch that is not delivered yet, the log determines the
// point at which a resumed run restarts reading.
//
//   mr::detail::replay_log log(order, mr::detail::replay_start::sample, false);
//   log.shard_begins({.pass = 3, .shard = 17, .first = 20'400});        // read stage, in order; for `sample` only
//   log.batch_ends({.pass = 3, .ordinal = 21'000, .rows_of_ordinal = 1});   // last segment, in order
//   mr::replay_point p = log.take();                            // trainer, once for each batch
//
// The restart point depends on the flow (replay_start). For `sample`, it consists of the sample of the batch's last
// row, and the first shard that is needed for this and later samples. For `pass`, it is the start of the pass. For
// `run`, it is the start of the run.
// Memory: one entry for each batch that has not been delivered yet, and one entry for each shard that these batches
// still need.
// Threads: any thread may call the functions. Calls that must be in order must not be concurrent. In the example, the
// trainer is the thread that calls next().
// Errors: std::bad_alloc.
#pragma once

#include <millrace/item/position.hpp>
#include <millrace/order/shard_order.hpp>
#include <millrace/sync/queues.hpp>

#include <cstdint>
#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The points at which a flow can restart, because its stages buffer no items there.
enum class replay_start { sample, pass, run };

/// Records the point at which reading restarts after each batch.
class replay_log {
 public:
  /// The start of a shard in a pass.
  struct shard_begin {
    std::uint64_t pass = 0;
    std::uint64_t shard = 0;   ///< ordinal in the pass's order
    std::uint64_t first = 0;   ///< ordinal of the shard's first sample in the pass
  };
  /// The last row of a batch, and the number of rows up to and including this row.
  struct batch_end {
    std::uint64_t pass = 0, ordinal = 0;   ///< pass and ordinal of the row's sample
    std::uint64_t rows_of_ordinal = 0;     ///< rows of that sample up to and including this row
    std::uint64_t rows_of_pass = 0;        ///< rows of the pass up to and including this row
    std::uint64_t rows_of_run = 0;         ///< rows of the run up to and including this row
    std::uint64_t buffered_tokens = 0;     ///< tokens in a packing stage when the sample arrived
    bool ends_pass = false;                ///< whether this row is the last row of the pass
  };

  /// `in_lanes` is true if several lanes (interleaved parts of the order) are read in turn
  /// (read/stage/interleaved_read_stage.hpp). Each lane has its own order of shards.
  replay_log(const shard_order& order, replay_start from, bool in_lanes);

  /// Records the start of a shard. Called in the order of the pass.
  void shard_begins(const shard_begin& p);
  /// Records the end of a batch. Called in the order of batches.
  void batch_ends(const batch_end& b);

  /// Removes the next batch from the log. Returns the restart point of a run that resumes after this batch. Requires
  /// that batch_ends() was called for this batch.
  replay_point take();

 private:
  void forget_shards_before(std::uint64_t pass, std::uint64_t sample);

  const shard_order plan_;
  const replay_start from_;
  const bool in_lanes_;
  std::mutex mutex_;
  fifo<shard_begin> shards_;
  fifo<batch_end> batches_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/work/segment/impl/replay_log.inl>
#endif
