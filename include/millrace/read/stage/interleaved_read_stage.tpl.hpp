// Defines the members of the templates in interleaved_read_stage.hpp.
#pragma once

#include <millrace/read/stage/interleaved_read_stage.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class T>
MILLRACE_INLINE sample<T> lane_sample_queue<T>::pop() {
  sample<T> s = samples_.pop();
  bytes_ -= held_bytes_of(s);
  return s;
}

template <class T>
MILLRACE_INLINE void lane_sample_queue<T>::put(sample<T>&& s) {
  bytes_ += held_bytes_of(s);
  samples_.push(std::move(s));
  ++put_;
}

template <class Source>
MILLRACE_RARE interleaved_read_stage<Source>::interleaved_read_stage(const Source& source, options o,
                                                                     sample_sink<item>& next)
    : read_stage_base<Source>(source, next, {o.threads, o.read_ahead_bytes}),
      options_(std::move(o)),
      ordinal_(options_.first_ordinal) {
  std::uint64_t pass = ~std::uint64_t{0};
  for (const lane_start& start : options_.lanes) {
    lanes_.push_back(make_owner<lane>(start, options_));
    pass = std::min(pass, start.pass);
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (options_.lanes[i].pass > pass) {
      lanes_[i].ready.end_epoch();
      continue;
    }
    if (i < options_.turn) ++turn_;
    in_pass_.push_back(i);
  }
  turn_ %= in_pass_.size();
}

template <class Source>
MILLRACE_INLINE void interleaved_read_stage<Source>::count_into(event_counts& counts) noexcept {
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i].shards.count_into(counts);
}

template <class Source>
MILLRACE_INLINE bool interleaved_read_stage<Source>::advance() {
  std::unique_lock lock(mutex_);
  if (pass_on()) return true;
  if (finished_ || !next_->can_accept()) return false;
  lane& l = lanes_[in_pass_[turn_]];
  shard* const from = idle_shard_of(l);
  if (!from) return false;
  this->read_into(lock, {.of = &l.shards, .from = from, .most = 1}, this->read_by_advance_);
  pass_on();
  return true;
}

template <class Source>
MILLRACE_INLINE std::size_t interleaved_read_stage<Source>::read_ahead_bytes() const noexcept {
  std::size_t sum = next_->held_bytes();
  for (std::size_t i = 0; i < lanes_.size(); ++i) sum += lanes_[i].shards.queued_bytes();
  return sum;
}

template <class Source>
MILLRACE_INLINE interleaved_read_stage<Source>::lane::lane(const lane_start& start, const options& o)
    : order(start.order),
      shards(order,
             {.epochs = ~std::uint64_t{0},
              .window_bytes = o.window_bytes / o.lanes.size(),
              .first_epoch = start.pass,
              .first_shard = start.shard,
              .first_sample = start.sample,
              .first_ordinal = start.ordinal,
              .may_be_empty = true,
              .lost = o.lost},
             ready) {}

template <class Source>
MILLRACE_INLINE bool interleaved_read_stage<Source>::pass_on() {
  bool moved = false;
  while ((had_space_ = next_->can_accept()) && !finished_) {   // an error waits for space, as a sample does
    lane& l = lanes_[in_pass_[turn_]];
    if (l.ready.empty()) l.shards.pass_on();
    if (!l.ready.empty()) {
      sample<item> s = l.ready.pop();
      ++l.delivered;
      s.ordinal = ordinal_++;
      next_->put(std::move(s));
      empty_passes_ = 0;
      ++turn_;
    } else if (l.ready.at_pass_end()) {
      in_pass_.erase(in_pass_.begin() + static_cast<std::ptrdiff_t>(turn_));
      if (in_pass_.empty()) begin_pass();
    } else if (l.ready.error()) {
      finish(in_rows_of_rank(l.ready.error(), l));
    } else {
      break;
    }
    if (turn_ == in_pass_.size()) turn_ = 0;
    moved = true;
  }
  next_->publish();
  return moved;
}

template <class Source>
MILLRACE_RARE std::exception_ptr interleaved_read_stage<Source>::in_rows_of_rank(std::exception_ptr why,
                                                                                 const lane& of) const {
  using enum late_data_error::suspect_samples;
  try {
    std::rethrow_exception(why);
  } catch (late_data_error& late) {
    if (late.suspects() != since) return why;
    // `of` is the lane with the error. Lanes deliver in turn. When this lane delivered its first suspect sample, each
    // other lane had delivered as many samples of this pass, or one more, or had no more samples.
    const std::uint64_t suspects = of.ready.next_row() - late.first_suspect(), row = next_->next_row();
    const std::uint64_t before = of.delivered - std::min(of.delivered, suspects);
    std::uint64_t later = 0;
    for (std::size_t i = 0; i < lanes_.size(); ++i)
      later += lanes_[i].delivered - std::min(lanes_[i].delivered, before);
    if (row == error_location::unknown || suspects > of.delivered || later > row) late.suspect(some);
    else late.suspect(since, row - later, late.is_exact() && lanes_.size() == 1);
  } catch (...) {}
  return why;
}

template <class Source>
MILLRACE_RARE void interleaved_read_stage<Source>::begin_pass() {
  bool any = false;
  for (std::size_t i = 0; i < lanes_.size(); ++i) any = any || lanes_[i].delivered > 0;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i].ready.begin_pass();
    lanes_[i].delivered = 0;
    in_pass_.push_back(i);
  }
  turn_ = 0;
  if (any) next_->end_pass();
  const auto& order = options_.lanes.front().order;
  const std::uint64_t most = same_samples_each_pass<Source> && !order.shuffled ? max_equal_empty_passes
                                                                               : max_empty_passes;
  if (++empty_passes_ == most) finish(exception_of(empty_share_error(most, order)));
}

template <class Source>
MILLRACE_INLINE void interleaved_read_stage<Source>::finish(std::exception_ptr error) {
  finished_ = true;
  next_->finish(std::move(error));
}

template <class Source>
MILLRACE_INLINE auto interleaved_read_stage<Source>::idle_shard_of(lane& l) -> shard* {
  shard* const open = l.shards.first_idle([](const shard&) { return true; });
  const std::size_t max_open = 1 + 2 * this->threads() / lanes_.size();
  return open || l.shards.open_shards() >= max_open ? open : l.shards.open_next();
}

template <class Source>
MILLRACE_INLINE auto interleaved_read_stage<Source>::find_work() -> portion {
  if (finished_) return {};
  const std::size_t downstream = std::min(next_->held_bytes(), ahead_.bytes());
  const std::size_t share = (ahead_.bytes() - downstream) / lanes_.size();
  const std::size_t turn = in_pass_[turn_];
  waits_for_bytes_ = false;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lane& l = lanes_[(turn + i) % lanes_.size()];
    if (l.shards.finished()) continue;
    const bool within = l.shards.queued_bytes() + l.ready.held_bytes() < share;
    const bool starves = i == 0 && l.ready.empty();
    if (!within) {
      waits_for_bytes_ = true;
      ahead_.reached();
    }
    if (!within && !starves) continue;
    shard* const from = idle_shard_of(l);
    if (!from || (!within && from != l.shards.front())) continue;
    return {&l.shards, from, within ? read_stage_base<Source>::chunk_samples : 1};
  }
  return {};
}

}}}   // namespace millrace::detail
