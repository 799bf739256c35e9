// Defines the members of the templates in reorder_buffer.hpp.
#pragma once

#include <millrace/read/stage/reorder_buffer.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class Source>
MILLRACE_INLINE reorder_buffer<Source>::reorder_buffer(const shard_order& order, options o, sample_sink<item>& next)
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

template <class Source>
MILLRACE_INLINE std::size_t reorder_buffer<Source>::unfinished_shards() const noexcept {
  std::size_t unfinished = 0;
  for (std::size_t i = 0; i < shards_.size(); ++i) unfinished += !shards_[i].done;
  return unfinished;
}

template <class Source>
MILLRACE_RARE auto reorder_buffer<Source>::open_next() -> shard* {
  if (finished_ || epoch_ >= options_.epochs) return nullptr;
  if constexpr (requires { requires Source::one_reader_at_a_time; })
    if (!shards_.empty() && !shards_[shards_.size() - 1].done) return nullptr;
  const bool begins = at_ == 0 || !begun_;
  if (!plan_->as_listed() && begins) epoch_shards_ = plan_->shards_of(epoch_);
  begun_ = true;
  auto opened = spare_shards_.empty() ? make_owner<shard>() : spare_shards_.extract(spare_shards_.size() - 1);
  opened->next_index = 0;
  opened->lost = nullptr;
  opened->error = nullptr;
  opened->done = false;
  opened->epoch = epoch_;
  opened->ordinal = plan_->as_listed() ? at_ : epoch_shards_[at_];
  opened->id_key = id_key(opened->ordinal);
  opened->turn = at_;
  opened->begun = false;
  opened->cut = false;
  opened->coming.clear();
  if constexpr (requires(const Source& s) { s.expect(epoch_shards_); })
    if (begins) {
      if (plan_->as_listed()) {
        for (std::size_t i = at_; i < plan_->settings().shards; ++i) opened->coming.push_back(i);
      } else {
        opened->coming.assign(epoch_shards_.begin() + static_cast<std::ptrdiff_t>(at_), epoch_shards_.end());
      }
    }
  opened->last_of_epoch = ++at_ == (plan_->as_listed() ? plan_->settings().shards : epoch_shards_.size());
  if (opened->last_of_epoch) {
    at_ = 0;
    ++epoch_;
  }
  shards_.push_back(std::move(opened));
  return shards_.get(shards_.size() - 1);
}

template <class Source>
MILLRACE_INLINE void reorder_buffer<Source>::append(shard& to, std::vector<sample<item>>& samples) {
  if (to.cut) {
    end(to, nullptr);
    return;
  }
  // Without a shuffle, samples of the current shard bypass the queue.
  std::span<sample<item>> left = samples;
  if (!finished_ && bypasses_queue(to) && to.samples.empty()) left = left.subspan(deliver_all(to, left).samples);
  for (sample<item>& s : left) {
    queued_bytes_.store(queued_bytes() + held_bytes_of(s), std::memory_order_relaxed);
    to.samples.push(std::move(s));
  }
}

template <class Source>
MILLRACE_RARE void reorder_buffer<Source>::end(shard& ended, std::exception_ptr error) {
  ended.done = true;
  if (!ended.cut) ended.error = std::move(error);
  if constexpr (requires { ended.open->report(*counts_); })
    if (ended.open && counts_) ended.open->report(*counts_);
  ended.open.reset();
}

template <class Source>
MILLRACE_INLINE bool reorder_buffer<Source>::pass_on() {
  bool moved = false;
  while ((has_space_ = next_->can_accept()) && !finished_) {
    if (ordinal_ >= options_.take && !shards_.empty() && !shards_[0].cut) {
      cut_pass();
    } else if (jitter_.ready()) {
      deliver(jitter_.pop());
    } else if (!advance_front()) {
      break;
    }
    moved = true;
  }
  next_->publish();
  return moved;
}

template <class Source>
MILLRACE_INLINE bool reorder_buffer<Source>::advance_front() {
  if (shards_.empty()) {
    if (epoch_ < options_.epochs) return false;
    finish(nullptr);
    return true;
  }
  shard& first = shards_[0];
  if (!first.samples.empty()) {
    pass_on_from(first);
    return true;
  }
  if (!first.done) return false;
  if (first.error && options_.lost) first.error = options_.lost->accept(std::move(first.error));
  if (first.error) {
    using enum late_data_error::suspect_samples;
    const auto suspects = !first.begun ? none : first.first_row == error_location::unknown ? some : since;
    finish(late_error_with_suspects(first.error, suspects, first.first_row, !plan_->jitters()));
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
    try {
      jitter_.end_epoch();
    } catch (...) {
      finish(std::current_exception());
      return true;
    }
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

template <class Source>
MILLRACE_RARE void reorder_buffer<Source>::cut_pass() {
  const std::uint64_t epoch = shards_[0].epoch;
  jitter_.clear();
  shard* last = nullptr;
  for (std::size_t i = 0; i < shards_.size() && shards_[i].epoch == epoch; ++i) {
    last = &shards_[i];
    while (!last->samples.empty()) queued_bytes_ -= held_bytes_of(last->samples.pop());
    last->cut = true;
    last->error = nullptr;
  }
  if (!std::exchange(last->last_of_epoch, true)) {
    at_ = 0;
    ++epoch_;
  }
}

template <class Source>
MILLRACE_INLINE void reorder_buffer<Source>::deliver(sample<item>&& s) {
  s.ordinal = ordinal_++;
  ++passed_on_;
  if (s.ordinal >= first_ordinal_) next_->put(std::move(s));
}

template <class Source>
MILLRACE_INLINE auto reorder_buffer<Source>::deliver_all(shard& from, std::span<sample<item>> next) ->
    typename sample_sink<item>::accepted {
  typename sample_sink<item>::accepted done;
  const std::uint64_t needed = options_.take - std::min(options_.take, ordinal_);
  if (needed == 0 || next.empty() || !next_->can_accept()) return done;
  if (!from.begun) begin(from);
  next = next.first(static_cast<std::size_t>(std::min<std::uint64_t>(needed, next.size())));
  std::uint64_t ordinal = ordinal_;
  for (sample<item>& s : next) {
    s.ordinal = ordinal++;
    if (s.ordinal >= first_ordinal_) continue;
    done.bytes += held_bytes_of(s);
    ++done.samples;
  }
  if (done.samples < next.size()) {
    const auto put = next_->put_all(next.subspan(done.samples));
    done.samples += put.samples;
    done.bytes += put.bytes;
  }
  epoch_samples_ += done.samples;
  ordinal_ += done.samples;
  passed_on_ += done.samples;
  return done;
}

template <class Source>
MILLRACE_RARE void reorder_buffer<Source>::begin(shard& from) {
  if (options_.log) {
    const replay_log::shard_begin begins{.pass = from.epoch, .shard = from.turn, .first = epoch_samples_};
    options_.log->shard_begins(begins);
  }
  from.first_row = ordinal_ < first_ordinal_ ? error_location::unknown : next_->next_row();
  from.begun = true;
}

template <class Source>
MILLRACE_INLINE void reorder_buffer<Source>::pass_on_from(shard& first) {
  if (!plan_->jitters()) {
    const auto delivered = deliver_all(first, first.samples.first_run());
    queued_bytes_.store(queued_bytes() - delivered.bytes, std::memory_order_relaxed);
    first.samples.drop_first(delivered.samples);
    return;
  }
  sample<item>& s = first.samples[0];
  queued_bytes_.store(queued_bytes() - held_bytes_of(s), std::memory_order_relaxed);
  if (!first.begun) begin(first);
  ++epoch_samples_;
  jitter_.push(std::move(s));
  first.samples.drop_first();
  if (jitter_.held_bytes() > options_.window_bytes && !jitter_.release()) finish(window_error());
}

template <class Source>
MILLRACE_INLINE void reorder_buffer<Source>::close_front() {
  spare_shards_.push_back(shards_.extract(0));
}

template <class Source>
MILLRACE_RARE void reorder_buffer<Source>::finish(std::exception_ptr error) {
  finished_ = true;
  jitter_.clear();
  next_->finish(std::move(error));
}

template <class Source>
MILLRACE_RARE std::exception_ptr reorder_buffer<Source>::empty_error(std::uint64_t epoch) const {
  return exception_of(no_sample_error("the source has no sample: its " + std::to_string(plan_->settings().shards) +
                                          " shards were read to the end in epoch " + std::to_string(epoch),
                                      "Inspect the shards (examples/inspect), and check the names of their members"));
}

template <class Source>
MILLRACE_RARE std::exception_ptr reorder_buffer<Source>::window_error() const {
  return exception_of(setup_error("the shuffle window exceeds its memory limit: got " +
                                      std::to_string(jitter_.held_bytes()) + " bytes in " +
                                      std::to_string(jitter_.size()) + " samples, expected at most " +
                                      std::to_string(options_.window_bytes) + " bytes",
                                  "Choose a smaller shuffle window, or a larger session_options::memory_bytes"));
}

}}}   // namespace millrace::detail
