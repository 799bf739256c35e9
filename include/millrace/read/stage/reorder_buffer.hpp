// Passes on samples in the order of the run. Reads may end in a different order.
//
//   mr::detail::reorder_buffer<mr::detail::shards_source> buffer(order, {.epochs = 3}, first_segment.entrance());
//   auto* shard = buffer.open_next();                  // null: no shard is left, or the next one must wait
//   buffer.append(*shard, samples);   // samples of the shard; at its end: buffer.end(*shard, error)
//   bool moved = buffer.pass_on();                     // passes on samples while the next segment has space
//
// The shards of all epochs form one sequence. Each shard stores its samples in a queue until all previous shards are
// finished. Then jitter_order (order/shard_order.hpp) shuffles the samples of the shard. As soon as the place of a
// sample is certain, the buffer passes it to the next segment (group of stages). Samples before the resume point are
// dropped.
// Errors: an error of a shard ends the run, unless reorder_buffer_options::lost accepts the error. The buffer first
// passes on the samples whose places are certain, and then the error in place of the next sample. Threads: not
// thread-safe. The read stage locks its mutex for each call.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/order/shard_order.hpp>
#include <millrace/read/stage/lost_shards.hpp>
#include <millrace/sync/queues.hpp>
#include <millrace/work/schedule/segment.hpp>
#include <millrace/work/segment/replay_log.hpp>

#include <atomic>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A shard that is being read, and its samples that were not passed on yet.
template <class Source>
struct open_shard {
  using item = typename Source::item;
  using reader = decltype(std::declval<const Source&>().open(std::size_t{}, std::uint64_t{}));

  MILLRACE_RARE ~open_shard() = default;

  std::uint64_t epoch = 0;
  std::size_t ordinal = 0;    // index in the user's list
  std::uint64_t id_key = 0;   // key from which the identities of its samples are derived
  std::size_t turn = 0;       // index in the epoch's order of shards
  bool last_of_epoch = false;
  bool begun = false;   // whether its first sample has left the queue
  std::string name{};   // for diagnostics; only the reading thread uses it
  // The shards of the epoch, from this one on. Set only in the first shard that is opened in an epoch, if the source
  // needs the list.
  std::vector<std::size_t> coming{};
  std::uint64_t first_row = error_location::unknown;   // lowest position that a sample of this shard may have
  std::optional<reader> open{};                        // only the reading thread uses it
  std::uint64_t next_index = 0;                        // only the reading thread uses it
  // If `lost` is set: number of samples of the shard; only the reading thread uses it.
  std::uint64_t stated_samples = 0;
  std::exception_ptr lost{};   // the reason why the remaining samples cannot be read; only the reading thread uses it
  fifo<sample<item>> samples{};
  std::exception_ptr error{};
  bool done = false;
  bool has_reader = false;   // whether a thread is reading it now
  bool cut = false;          // true if its remaining samples are not needed
};

/// Options of reorder_buffer.
struct reorder_buffer_options {
  std::uint64_t epochs = 1;
  std::size_t window_bytes = ~std::size_t{0};   ///< maximum bytes in the shuffle window
  std::uint64_t first_epoch = 0;
  std::size_t first_shard = 0;              ///< index in the order of the first epoch; earlier shards are skipped
  std::uint64_t first_sample = 0;           ///< number of samples in the skipped shards
  std::uint64_t first_ordinal = 0;          ///< samples of the first epoch with a lower ordinal are dropped
  replay_log* log = nullptr;                ///< receives the start of each shard; may be null
  std::uint64_t take = ~std::uint64_t{0};   ///< maximum number of samples to deliver in each epoch
  bool may_be_empty = false;                ///< whether an epoch without a sample is accepted
  lost_shards* lost = nullptr;   ///< lets the run continue after a damaged shard; if null, such a shard ends the run
};

/// The error for a source without samples, or for a rank whose shards have no samples.
class no_sample_error : public data_error {
 public:
  using data_error::data_error;

  /// Appends `more` to the message, and replaces the hint.
  void explain(std::string_view more, std::string hint) {
    add(more);
    advise(std::move(hint));
  }
};

/// Owns the open shards of a run. Passes on their samples in order.
template <class Source>
class reorder_buffer {
 public:
  using item = typename Source::item;
  using shard = open_shard<Source>;
  using options = reorder_buffer_options;

  reorder_buffer(const shard_order& order, options o, sample_sink<item>& next);
  MILLRACE_RARE ~reorder_buffer() = default;

  /// Sets the counters that receive the events of the shards' readers.
  void count_into(event_counts& counts) noexcept { counts_ = &counts; }

  /// Returns whether the run is over: finish() of the next segment was called.
  bool finished() const noexcept { return finished_; }
  /// Returns whether the next segment had space at the last pass_on().
  bool had_space() const noexcept { return has_space_; }
  /// Returns the number of open shards.
  std::size_t open_shards() const noexcept { return shards_.size(); }
  /// Returns the shard of the next sample, or null if no shard is open.
  shard* front() const noexcept { return shards_.empty() ? nullptr : shards_.get(0); }
  /// Returns whether samples of the shard bypass its queue while the next segment has space.
  bool bypasses_queue(const shard& of) const noexcept { return &of == front() && !plan_->jitters(); }
  /// Returns the number of open shards that were not read to their end.
  std::size_t unfinished_shards() const noexcept;
  /// Returns the first open shard that has more to read, that no thread is reading, and that satisfies `readable`.
  /// Returns null if there is none.
  template <class Readable>
  shard* first_idle(const Readable& readable) const {
    for (std::size_t i = 0; i < shards_.size(); ++i)
      if (shard& s = shards_[i]; !s.done && !s.has_reader && readable(s)) return &s;
    return nullptr;
  }
  /// Returns the bytes of the samples in the queues of all shards. Any thread may call this function.
  std::size_t queued_bytes() const noexcept { return queued_bytes_.load(std::memory_order_relaxed); }
  /// Returns the number of samples passed on in this session, including samples dropped because they precede the resume
  /// point.
  std::uint64_t passed_on() const noexcept { return passed_on_; }

  /// Opens the next shard of the run. Returns null if no shard is left. Also returns null while another shard is being
  /// read, if the source allows only one reader at a time.
  shard* open_next();

  /// Adds samples that were read from an open shard. Moves the samples out of `samples`.
  void append(shard& to, std::vector<sample<item>>& samples);
  /// Ends a shard that has no more samples. If `error` is set, it replaces the next sample of the shard.
  void end(shard& ended, std::exception_ptr error);

  /// Passes on samples while the next segment has space. Returns whether there was any progress.
  bool pass_on();

  /// Ends the run. An error is delivered in place of the next sample.
  void finish(std::exception_ptr error);

 private:
  /// Processes the next samples of the current shard, or the end of the shard. Returns false if neither is possible
  /// yet, because the next samples have not been read.
  bool advance_front();

  /// Ends the current pass early: drops the samples of its open shards, and does not open its other shards.
  void cut_pass();

  /// Passes the next sample in order to the next segment. Drops it if it precedes the resume point.
  void deliver(sample<item>&& s);
  /// Records the position of the shard's first sample.
  void begin(shard& from);
  /// Passes samples of the current shard to the next segment, while the segment has space. Drops samples that precede
  /// the resume point. Returns the number and the bytes of the processed samples.
  typename sample_sink<item>::accepted deliver_all(shard& from, std::span<sample<item>> next);
  /// With a shuffle, moves one sample of the current shard into jitter_. Otherwise, passes on as many samples of this
  /// shard as fit into the next segment.
  void pass_on_from(shard& first);

  /// Removes the current shard. The next shard becomes the current shard.
  void close_front();
  std::exception_ptr empty_error(std::uint64_t epoch) const;
  std::exception_ptr window_error() const;

  const shard_order* const plan_;
  const options options_;
  sample_sink<item>* const next_;
  event_counts* counts_ = nullptr;

  jitter_order<item> jitter_;
  owner_list<shard> shards_;   // in the order of the run; [0] is the current shard
  owner_list<shard> spare_shards_;
  std::atomic<std::size_t> queued_bytes_{0};
  std::vector<std::size_t> epoch_shards_;   // empty if shards are read as listed
  std::uint64_t epoch_;                     // epoch of the shard to open next
  std::size_t at_;                          // index of the shard to open next in the order of its epoch
  std::uint64_t epoch_samples_;             // number of samples so far in the epoch of the current shard
  std::uint64_t ordinal_;                   // ordinal of the next sample to deliver, in that epoch
  std::uint64_t first_ordinal_;             // ordinal of the first sample that is not dropped, in that epoch
  std::uint64_t passed_on_ = 0;             // includes dropped samples
  bool begun_ = false, epoch_ended_ = false, finished_ = false;
  bool has_space_ = true;
};

}}}   // namespace millrace::detail

#include <millrace/read/stage/reorder_buffer.tpl.hpp>
