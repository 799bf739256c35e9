// The read stage of a source without an index, for epochs of a fixed number of batches. It reads lanes (interleaved
// sequences of shards) concurrently. Its merger removes samples from the lanes in a fixed order.
//
//   mr::detail::interleaved_read_stage<mr::detail::shards_source> in(
//       source, {.lanes = at.lanes, .turn = at.turn, .first_ordinal = 6'400}, segment.entrance());
//   in.start();
//   in.stop();  in.join();      // when the session ends
//
// Rule: the merger removes samples of pass k + 1 only after all lanes of this rank have ended pass k. Lane l owns the
// shards l, l + lanes, l + 2 * lanes, ... of each pass's order. Each sample of a lane moves by a random distance below
// the shuffle window (reorder_buffer.hpp). The merger removes one sample from each lane in turn, and skips lanes that
// have ended the pass. Each pass begins with the first lane.
// A lane that has ended a pass already reads the next pass while the other lanes end theirs. Each lane has at most 1 +
// 2 * threads / lanes open shards. The read-ahead limit (read_stage_base.hpp) is divided into equal shares, one for
// each lane. If the lane of the next sample has no sample ready, this lane may exceed its share. Without this
// exception, the run could wait forever.
// Errors: an error of a lane replaces that lane's next sample. data_error after 100 passes without a sample, or after 2
// if all passes have the same samples.
// Threads: `threads` I/O threads. With 0 threads, advance() reads on the calling thread. Otherwise, only the I/O
// threads wait for reads.
#pragma once

#include <millrace/flow/stage.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/read/stage/read_stage_base.hpp>
#include <millrace/sync/queues.hpp>
#include <millrace/work/schedule/segment.hpp>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// A short queue of the next samples of a lane, between the lane's reorder_buffer and the merger of the lanes.
//
//   mr::detail::lane_sample_queue<mr::record> ready(8);   // a reorder_buffer fills it while can_accept()
//   if (!ready.empty()) next.put(ready.pop());                     // the merger; an empty queue may have an error()
//   if (ready.at_pass_end()) ready.begin_pass();                   // samples of the next pass may now enter
//
// Threads: one at a time, under the lock of the read stage.

/// The next samples of one lane, up to the end of its current pass.
template <class T>
class lane_sample_queue final : public sample_sink<T> {
 public:
  explicit lane_sample_queue(std::size_t capacity) : capacity_(capacity) {}

  /// Returns whether the queue is empty.
  bool empty() const noexcept { return samples_.empty(); }
  /// Returns the first sample and removes it. The queue must not be empty.
  sample<T> pop();
  /// Returns whether the lane's pass has ended, and all its samples were removed.
  bool at_pass_end() const noexcept { return pass_ended_ && samples_.empty(); }
  /// Allows samples of the next pass to enter.
  void begin_pass() noexcept { pass_ended_ = false; }
  /// Returns the error that follows the stored samples, or null.
  const std::exception_ptr& error() const noexcept { return error_; }

  bool can_accept() override { return !pass_ended_ && samples_.size() < capacity_; }
  void put(sample<T>&& s) override;
  void end_epoch() override { pass_ended_ = true; }
  void finish(std::exception_ptr error) override { error_ = std::move(error); }
  void publish() override {}
  std::uint64_t backlog() const noexcept override { return samples_.size(); }
  std::size_t held_bytes() const noexcept override { return bytes_; }
  void set_listener(space_listener*) override {}
  /// Returns the number of samples that have entered the queue since the start.
  std::uint64_t next_row() const noexcept override { return put_; }

 private:
  const std::size_t capacity_;
  fifo<sample<T>> samples_;
  std::size_t bytes_ = 0;
  std::uint64_t put_ = 0;
  bool pass_ended_ = false;   // the pass ends after the stored samples
  std::exception_ptr error_;
};

/// The point from which a lane is read.
struct lane_start {
  shard_order::options order{};
  std::uint64_t pass = 0;
  std::size_t shard = 0;      ///< index in the order of the lane's shards in that pass
  std::uint64_t sample = 0;   ///< number of samples in the lane's pass before that shard
  /// Index of the first sample to deliver, in the lane's shuffled order of that pass. Samples before it are dropped.
  std::uint64_t ordinal = 0;
};

/// Options of interleaved_read_stage.
struct interleaved_read_stage_options {
  unsigned threads = 4;   ///< number of I/O threads; with 0, advance() reads
  std::size_t read_ahead_bytes = std::size_t{256} << 20;
  std::size_t window_bytes = ~std::size_t{0};   ///< maximum bytes in the shuffle windows of all lanes
  std::vector<lane_start> lanes{};              ///< lanes of this rank in the order of their turns. Lanes may
                                                ///< start in pass k, or in pass k + 1 if they have ended pass k
  std::size_t turn =
      0;   ///< index of the lane of the next sample. If this lane has ended the pass, the next lane in turn is used
  std::uint64_t first_ordinal = 0;   ///< number of samples of this rank before the first one to deliver
  lost_shards* lost = nullptr;       ///< lets the run continue after a lost shard; may be null
};

template <class Order>
MILLRACE_RARE no_sample_error empty_share_error(std::uint64_t passes, const Order& order) {
  return {"the shards of a rank have no sample: got none in " + std::to_string(passes) +
              " passes, expected at least one (lane " + std::to_string(order.lane) + " of " +
              std::to_string(order.lanes) + " and the other lanes of that rank, " + std::to_string(order.shards) +
              " shards in total)",
          "Omit the empty shards, run fewer ranks, or shuffle"};
}

/// Reads the lanes of one rank concurrently, and merges them in a fixed order.
template <class Source>
class interleaved_read_stage final : public read_stage_base<Source> {
 public:
  using item = typename Source::item;
  using options = interleaved_read_stage_options;
  /// If this number of consecutive passes has no sample, the source counts as empty.
  static constexpr std::uint64_t max_empty_passes = 100;
  /// The limit for a source whose passes all have the same samples. The limit is 2, because the first pass of a resumed
  /// run may be incomplete.
  static constexpr std::uint64_t max_equal_empty_passes = 2;

  interleaved_read_stage(const Source& source, options o, sample_sink<item>& next);
  MILLRACE_RARE ~interleaved_read_stage() override = default;

  void count_into(event_counts& counts) noexcept override;

  /// Reads one sample on the calling thread, or passes on waiting samples. Returns false if there was nothing to do.
  bool advance() override;

  std::size_t read_ahead_bytes() const noexcept override;

 private:
  using typename read_stage_base<Source>::shard;
  using typename read_stage_base<Source>::portion;
  using read_stage_base<Source>::next_;
  using read_stage_base<Source>::ahead_;
  using read_stage_base<Source>::mutex_;

  static constexpr std::size_t ready_samples = 8;

  struct lane {
    lane(const lane_start& start, const options& o);

    const shard_order order;
    lane_sample_queue<item> ready{ready_samples};
    reorder_buffer<Source> shards;
    std::uint64_t delivered = 0;   // samples of this pass that this session has delivered
  };

  // ---- under mutex_ ----

  bool pass_on() override;
  portion find_work() override;
  bool needs_space() override { return !had_space_ || waits_for_bytes_; }
  void finish(std::exception_ptr error) override;

  /// Returns `why`, an error of the lane `of`. If `why` names samples that may be wrong, converts their positions to
  /// rows of this rank.
  std::exception_ptr in_rows_of_rank(std::exception_ptr why, const lane& of) const;
  void begin_pass();
  shard* idle_shard_of(lane& l);

  const options options_;
  owner_list<lane> lanes_;
  std::vector<std::size_t> in_pass_;   // lanes that have not ended the pass, in the order of their turns
  std::size_t turn_ = 0;               // index of the next sample's lane in in_pass_
  std::uint64_t ordinal_;              // number of samples of this rank before the next sample
  std::uint64_t empty_passes_ = 0;     // number of passes that have ended since the last sample
  bool finished_ = false;
  bool had_space_ = true;          // true if the last pass_on() found space
  bool waits_for_bytes_ = false;   // true if a lane has reached its share of the read-ahead limit
};

}}}   // namespace millrace::detail

#include <millrace/read/stage/interleaved_read_stage.tpl.hpp>
