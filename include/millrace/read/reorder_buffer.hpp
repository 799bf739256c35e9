// Puts the samples of a run's shards in order, whichever shard was read first.
//
//   mr::detail::reorder_buffer<mr::detail::shards_source> buffer(order, {.epochs = 3}, first_segment.entrance());
//   auto* shard = buffer.open_next();                  // null: there is none, or not yet
//   buffer.append(*shard, samples);                    // samples read from it; at its end: buffer.end(*shard, error)
//   bool moved = buffer.pass_on();                     // passes on as many samples as the next segment has space for
//   if (buffer.take_news()) wake_readers();            // one more shard may be opened, or the run is over
//
// The shards of all epochs form one sequence. Each shard holds its samples in a queue of its own until the shards
// before it are done. Then its samples enter the jitter order. They go on to the next segment as soon as their ordinal
// is certain.
// A resumed run opens only the shards that are still needed. It drops their samples that come before the resume point
// (first_sample, first_ordinal).
// Errors: an error of a shard ends the run. All samples before it are passed on; then the error replaces the next
// sample. Threads: one at a time, under the lock of the read stage.
#pragma once

#include <millrace/measure/event_counts.hpp>
#include <millrace/order/shard_order.hpp>
#include <millrace/sync/fifo.hpp>
#include <millrace/work/replay_log.hpp>
#include <millrace/work/segment.hpp>

#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A shard that is being read, and its samples whose turn has not come.
template <class Source>
struct open_shard {
  using item = typename Source::item;
  using reader = decltype(std::declval<const Source&>().open(std::size_t{}, std::uint64_t{}));

  std::uint64_t epoch = 0;
  std::size_t ordinal = 0;   // index in the list as the user gave it
  std::size_t turn = 0;      // index in the epoch's order of shards
  bool last_of_epoch = false;
  bool begun = false;        // its first sample has left its queue
  std::string name{};        // for diagnostics; only the reading thread uses it
  std::uint64_t first_row = error_location::unknown;   // row of its first sample, or an earlier one
  std::optional<reader> open{};   // only the reading thread uses it
  std::uint64_t next_index = 0;   // only the reading thread uses it
  fifo<sample<item>> samples{};
  std::exception_ptr error{};
  bool done = false;
  bool reader_waits = false;   // its reader waits until more may be read ahead
  bool in_hand = false;        // a thread is reading it now
  bool cut = false;            // its remaining samples are not needed
};

/// Options of reorder_buffer.
struct reorder_buffer_options {
  std::uint64_t epochs = 1;
  std::size_t window_bytes = ~std::size_t{0};   ///< bound on what the shuffle window holds
  std::uint64_t first_epoch = 0;
  std::size_t first_shard = 0;                   ///< index in that epoch's order; earlier shards are skipped
  std::uint64_t first_sample = 0;               ///< samples of the epoch in the skipped shards
  std::uint64_t first_ordinal = 0;                ///< ordinal in that epoch; samples before it are dropped
  replay_log* log = nullptr;                    ///< records where each shard begins; null: no log
  std::uint64_t take = ~std::uint64_t{0};       ///< samples to give of each epoch; the rest is not needed
  bool may_be_empty = false;                    ///< accept an epoch without a sample
};

/// Holds the open shards of a run, and passes on their samples in order.
template <class Source>
class reorder_buffer {
 public:
  using item = typename Source::item;
  using shard = open_shard<Source>;
  using options = reorder_buffer_options;

  reorder_buffer(const shard_order& order, options o, sample_sink<item>& next)
      : plan_(&order),
        options_(o),
        next_(&next),
        jitter_(order),
        epoch_(o.first_epoch),
        at_(o.first_shard),
        epoch_samples_(o.first_sample),
        ordinal_(o.first_sample),
        first_ordinal_(o.first_ordinal) {
    jitter_.begin_epoch(o.first_sample);
  }

  /// Sets where the readers of the shards report their events.
  void count_into(event_counts& counts) noexcept { counts_ = &counts; }

  /// Returns whether the run is over: finish() was passed on.
  bool finished() const noexcept { return finished_; }
  /// Returns whether the next segment had space when pass_on() last looked.
  bool had_room() const noexcept { return room_; }
  /// Returns the number of open shards.
  std::size_t open_shards() const noexcept { return shards_.size(); }
  /// Returns the shard whose turn it is, or null.
  shard* front() const noexcept { return shards_.empty() ? nullptr : shards_.front().get(); }
  /// Returns the first unfinished shard that no thread is reading, or null.
  shard* first_idle() const noexcept {
    for (const auto& p : shards_)
      if (!p->done && !p->in_hand) return p.get();
    return nullptr;
  }
  /// Returns the bytes of the samples in the queues of all shards. May be called from any thread.
  std::size_t queued_bytes() const noexcept { return queued_bytes_.load(std::memory_order_relaxed); }
  /// Returns the samples passed on since the session began, including those dropped on resume.
  std::uint64_t passed_on() const noexcept { return passed_on_; }
  /// Returns whether another shard may be opened or the run is over, since the last call.
  bool take_news() noexcept { return std::exchange(news_, false); }

  /// Opens the next shard of the run. Returns null if there is none, or not yet.
  shard* open_next() {
    if (finished_ || epoch_ >= options_.epochs) return nullptr;
    if constexpr (requires { requires Source::one_reader_at_a_time; })
      if (!shards_.empty() && !shards_.back()->done) return nullptr;
    if (!plan_->as_listed() && (at_ == 0 || epoch_shards_.empty())) epoch_shards_ = plan_->shards_of(epoch_);
    auto opened = spare_shards_.empty() ? std::make_unique<shard>() : std::move(spare_shards_.back());
    if (!spare_shards_.empty()) spare_shards_.pop_back();
    opened->next_index = 0;
    opened->error = nullptr;
    opened->done = false;
    opened->reader_waits = false;
    opened->epoch = epoch_;
    opened->ordinal = plan_->as_listed() ? at_ : epoch_shards_[at_];
    opened->turn = at_;
    opened->begun = false;
    opened->cut = false;
    opened->last_of_epoch = ++at_ == (plan_->as_listed() ? plan_->settings().shards : epoch_shards_.size());
    if (opened->last_of_epoch) {
      at_ = 0;
      ++epoch_;
    }
    shards_.push_back(std::move(opened));
    return shards_.back().get();
  }

  /// Adds samples that were read from an open shard. Moves the samples out of `samples`.
  void append(shard& to, std::vector<sample<item>>& samples) {
    if (to.cut) {
      end(to, nullptr);
      return;
    }
    // Without a shuffle, samples of the shard whose turn it is need no queue.
    const bool at_once = !finished_ && !plan_->jitters() && &to == front();
    for (auto& s : samples) {
      if (at_once && to.samples.empty() && ordinal_ < options_.take && next_->can_accept()) {
        count_sample_of(to);
        give(std::move(s));
      } else {
        queued_bytes_.store(queued_bytes() + held_bytes_of(*s.item), std::memory_order_relaxed);
        to.samples.push(std::move(s));
      }
    }
  }
  /// Ends a shard: no more samples come from it. An `error` replaces its next sample.
  void end(shard& ended, std::exception_ptr error) {
    ended.done = true;
    if (!ended.cut) ended.error = std::move(error);
    if constexpr (requires { ended.open->report(*counts_); })
      if (ended.open && counts_) ended.open->report(*counts_);
    ended.open.reset();
  }

  /// Passes on samples while the next segment has space. Returns whether any step was made.
  bool pass_on() {
    bool moved = false;
    while ((room_ = next_->can_accept()) && !finished_) {
      if (ordinal_ >= options_.take && !shards_.empty() && !shards_.front()->cut) {
        cut_pass();
      } else if (jitter_.ready()) {
        give(jitter_.pop());
      } else if (!advance_front()) {
        break;
      }
      moved = true;
    }
    next_->publish();
    return moved;
  }

 private:
  /// Makes one step with the shard whose turn it is. Returns false if the shard has nothing to give yet.
  bool advance_front() {
    if (shards_.empty()) {
      if (epoch_ < options_.epochs) return false;
      finish(nullptr);
      return true;
    }
    shard& first = *shards_.front();
    if (!first.samples.empty()) {
      pass_on_from(first);
      return true;
    }
    if (!first.done) return false;
    if (first.error) {
      using enum late_data_error::suspect_samples;
      const auto suspects = !first.begun ? none : first.first_row == error_location::unknown ? some : since;
      finish(with_suspects(first.error, suspects, first.first_row, !plan_->jitters()));
      return true;
    }
    if (!first.last_of_epoch) {
      close_front();
      return true;
    }
    if (!epoch_ended_) {
      if (epoch_samples_ == 0 && !options_.may_be_empty) {
        finish(empty_error(first.epoch));
        return true;
      }
      jitter_.end_epoch();
      epoch_ended_ = true;
      return true;
    }
    next_->end_epoch();
    jitter_.begin_epoch();
    epoch_ended_ = false;
    epoch_samples_ = ordinal_ = first_ordinal_ = 0;
    close_front();
    return true;
  }

  /// Drops the rest of the current pass: cuts its open shards, and opens no other shard of it.
  void cut_pass() {
    const std::uint64_t epoch = shards_.front()->epoch;
    jitter_.clear();
    shard* last = nullptr;
    for (const auto& p : shards_) {
      if (p->epoch != epoch) break;
      for (last = p.get(); !p->samples.empty();) queued_bytes_ -= held_bytes_of(*p->samples.pop().item);
      p->cut = true;
      p->error = nullptr;
    }
    if (!std::exchange(last->last_of_epoch, true)) {
      at_ = 0;
      ++epoch_;
    }
    news_ = true;
  }

  /// Gives the next sample in order to the next segment, unless it was delivered before the resume.
  void give(sample<item>&& s) {
    s.ordinal = ordinal_++;
    ++passed_on_;
    if (s.ordinal >= first_ordinal_) next_->put(std::move(s));
  }

  void count_sample_of(shard& from) {
    if (options_.log && !from.begun) {
      const replay_log::shard_begin begins{.pass = from.epoch, .shard = from.turn, .first = epoch_samples_};
      options_.log->shard_begins(begins);
    }
    if (!from.begun) from.first_row = ordinal_ < first_ordinal_ ? error_location::unknown : next_->next_row();
    from.begun = true;
    ++epoch_samples_;
  }

  void pass_on_from(shard& first) {
    sample<item> s = first.samples.pop();
    queued_bytes_.store(queued_bytes() - held_bytes_of(*s.item), std::memory_order_relaxed);
    count_sample_of(first);
    if (!plan_->jitters()) {
      give(std::move(s));
      return;
    }
    jitter_.push(std::move(s));
    if (jitter_.held_bytes() > options_.window_bytes) finish(window_error());
  }

  /// Moves on to the next shard; one more shard may then be opened.
  void close_front() {
    spare_shards_.push_back(std::move(shards_.front()));
    shards_.pop_front();
    news_ = true;
  }

  void finish(std::exception_ptr error) {
    finished_ = true;
    jitter_.clear();
    next_->finish(std::move(error));
    news_ = true;
  }

  std::exception_ptr empty_error(std::uint64_t epoch) const {
    return std::make_exception_ptr(
        data_error("the source has no sample: its " + std::to_string(plan_->settings().shards) +
                       " shards were read to the end in epoch " + std::to_string(epoch),
                   "Look at what the shards hold (examples/inspect), and at the names of their members"));
  }
  std::exception_ptr window_error() const {
    return std::make_exception_ptr(
        setup_error("the shuffle window holds " + std::to_string(jitter_.held_bytes()) + " bytes in " +
                        std::to_string(jitter_.size()) + " samples, more than the " +
                        std::to_string(options_.window_bytes) + " bytes that the budget leaves for it",
                    "Choose a smaller shuffle window, or a larger session_options::memory_bytes"));
  }

  const shard_order* const plan_;
  const options options_;
  sample_sink<item>* const next_;
  event_counts* counts_ = nullptr;

  jitter_order<item> jitter_;
  std::deque<std::unique_ptr<shard>> shards_;   // in the order of the run; the first one gives samples
  std::vector<std::unique_ptr<shard>> spare_shards_;
  std::atomic<std::size_t> queued_bytes_{0};
  std::vector<std::size_t> epoch_shards_;   // empty if shards come as listed: an endless epoch has endlessly many
  std::uint64_t epoch_;   // epoch of the shard to open next
  std::size_t at_;        // index of that shard in the order of its epoch
  std::uint64_t epoch_samples_;   // samples so far in the epoch of the shard whose turn it is
  std::uint64_t ordinal_;           // ordinal in that epoch of the next sample to give
  std::uint64_t first_ordinal_;     // ordinal in that epoch of the first sample that is not dropped
  std::uint64_t passed_on_ = 0;   // includes dropped samples
  bool epoch_ended_ = false, finished_ = false, news_ = false;
  bool room_ = true;
};

}}}  // namespace millrace::detail
