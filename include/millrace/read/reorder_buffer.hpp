// The shards of a run in their order: samples go on in plan order, whichever part was read first.
//
//   reorder_buffer<shards_source> order(plan, {.epochs = 3}, first_segment.entrance());
//   auto* part = order.open_next();                    // null: there is none, or not yet
//   order.append(*part, samples);                      // what somebody has read from it; then order.end(*part, error)
//   bool moved = order.pass_on();                      // as far as the next segment has room
//   if (order.take_news()) wake_everybody();           // one more part may be opened, or the run is over
//
// Part k of the run (parts follow each other over the borders of epochs) keeps its samples in a queue of its own until
// the parts before it are through. Then they go into the jitter order, and from there, as soon as their place is
// certain, to the next segment. An error of a part ends the run: everything in front of it is passed on, then the error
// in the place of the next sample. A run that goes on where another stopped opens only the parts that are still needed
// and drops what came from them before (first_sample, first_place). Threads: one at a time, under the intake's lock.
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

namespace millrace { inline namespace MILLRACE_ABI {

/// A part that is being read, and its samples whose turn has not come.
template <class Source>
struct open_shard {
  using item = typename Source::item;
  using reader = decltype(std::declval<const Source&>().open(std::size_t{}, std::uint64_t{}));

  std::uint64_t epoch = 0;
  std::size_t ordinal = 0;   // in the list as the user gave it
  std::size_t turn = 0;      // in the epoch's order of parts
  bool last_of_epoch = false;
  bool begun = false;        // its first sample was passed on
  std::string name{};             // for who looks on; of the reading thread only
  std::uint64_t first_row = error_location::unknown;   // no sample of it stands before that position
  std::optional<reader> open{};   // of the reading thread only
  std::uint64_t next_index = 0;   // of the reading thread only
  fifo<sample<item>> samples{};
  std::exception_ptr error{};
  bool done = false;
  bool reader_waits = false;   // until more may be read ahead
  bool in_hand = false;        // some thread reads it now
  bool cut = false;            // nothing more of it is wanted
};

struct reorder_buffer_options {
  std::uint64_t epochs = 1;
  std::size_t window_bytes = ~std::size_t{0};   ///< most that the shuffle window may hold
  std::uint64_t first_epoch = 0;
  std::size_t first_shard = 0;                   ///< of that epoch, in its order; those before it are passed over
  std::uint64_t first_sample = 0;               ///< how many are in those
  std::uint64_t first_place = 0;                ///< in the order of that epoch; samples before it are dropped
  replay_log* log = nullptr;                    ///< told where each part begins
  std::uint64_t take = ~std::uint64_t{0};       ///< samples of each epoch, in its order; what lies behind is not wanted
  bool may_be_empty = false;                    ///< an epoch without a sample is no error
};

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
        place_(o.first_sample),
        first_place_(o.first_place) {
    jitter_.begin_epoch(o.first_sample);
  }

  void count_into(event_counts& counts) noexcept { counts_ = &counts; }

  bool finished() const noexcept { return finished_; }
  /// Whether the next segment had room when pass_on() last looked.
  bool had_room() const noexcept { return room_; }
  std::size_t open_shards() const noexcept { return shards_.size(); }
  /// The part whose turn it is, or null.
  shard* front() const noexcept { return shards_.empty() ? nullptr : shards_.front().get(); }
  /// The first part that has more to give and that nobody reads, or null.
  shard* first_idle() const noexcept {
    for (const auto& p : shards_)
      if (!p->done && !p->in_hand) return p.get();
    return nullptr;
  }
  /// Of samples in the queues of all parts. Any thread.
  std::size_t queued_bytes() const noexcept { return queued_bytes_.load(std::memory_order_relaxed); }
  /// Samples, since the run began.
  std::uint64_t passed_on() const noexcept { return passed_on_; }
  bool take_news() noexcept { return std::exchange(news_, false); }

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

  void append(shard& to, std::vector<sample<item>>& samples) {
    if (to.cut) {
      end(to, nullptr);
      return;
    }
    // Without a shuffle, what is its turn already need not queue.
    const bool at_once = !finished_ && !plan_->jitters() && &to == front();
    for (auto& s : samples) {
      if (at_once && to.samples.empty() && place_ < options_.take && next_->has_room()) {
        count_sample_of(to);
        give(std::move(s));
      } else {
        queued_bytes_.store(queued_bytes() + held_bytes_of(*s.item), std::memory_order_relaxed);
        to.samples.push(std::move(s));
      }
    }
  }
  /// No more samples come from it; with an error, it takes the place of the next one.
  void end(shard& ended, std::exception_ptr error) {
    ended.done = true;
    if (!ended.cut) ended.error = std::move(error);
    if constexpr (requires { ended.open->report(*counts_); })
      if (ended.open && counts_) ended.open->report(*counts_);
    ended.open.reset();
  }

  /// True if anything moved.
  bool pass_on() {
    bool moved = false;
    while ((room_ = next_->has_room()) && !finished_) {
      if (place_ >= options_.take && !shards_.empty() && !shards_.front()->cut) {
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
  /// One step with the part whose turn it is; false if it has nothing to give yet.
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
    epoch_samples_ = place_ = first_place_ = 0;
    close_front();
    return true;
  }

  /// The part whose turn it is, and those behind it in its pass, give nothing any more; no other is opened.
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

  /// The next in order, unless it came before this run went on.
  void give(sample<item>&& s) {
    s.place = place_++;
    ++passed_on_;
    if (s.place >= first_place_) next_->put(std::move(s));
  }

  void count_sample_of(shard& from) {
    if (options_.log && !from.begun) {
      const replay_log::shard_begin begins{.pass = from.epoch, .shard = from.turn, .first = epoch_samples_};
      options_.log->shard_begins(begins);
    }
    if (!from.begun) from.first_row = place_ < first_place_ ? error_location::unknown : next_->next_row();
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

  /// The next part's turn has come, and one more may be opened.
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
  std::deque<std::unique_ptr<shard>> shards_;   // in the order of the run
  std::vector<std::unique_ptr<shard>> spare_shards_;
  std::atomic<std::size_t> queued_bytes_{0};
  std::vector<std::size_t> epoch_shards_;   // empty if they come as listed: an endless epoch has no end of them
  std::uint64_t epoch_;   // of the part to be opened next
  std::size_t at_;        // its place in that epoch
  std::uint64_t epoch_samples_;   // of that of the part whose turn it is
  std::uint64_t place_;           // in its order, of the next to be given
  std::uint64_t first_place_;     // to be given, not dropped
  std::uint64_t passed_on_ = 0;   // dropped ones too
  bool epoch_ended_ = false, finished_ = false, news_ = false;
  bool room_ = true;
};

}}  // namespace millrace
