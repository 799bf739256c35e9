// Definitions for mix_plan.hpp.
#pragma once

#include <millrace/order/mix_plan.hpp>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE mix_plan::mix_plan(options o) : options_(std::move(o)) {
  if (options_.global_batch == 0) throw setup_error("the batch size is 0", "Choose a size of at least 1");
  std::uint64_t shards = 0;
  std::vector<std::uint64_t> passes;
  for (mix_source_spec& s : options_.sources) {
    const std::uint64_t samples = std::accumulate(s.counts.begin(), s.counts.end(), std::uint64_t{0});
    if (samples == 0)
      throw setup_error("source " + std::to_string(sources_.size()) + " of the mix has no sample",
                        "Omit the source, or inspect its shards (examples/inspect)");
    first_shards_.push_back(shards);
    passes.push_back(samples);
    shards += s.counts.size();
    sources_.push_back(exact_order({.seed = s.seed,
                                    .counts = std::move(s.counts),
                                    .shuffled = s.window > 0,
                                    .window = s.window,
                                    .lanes = options_.lanes,
                                    .permutes = options_.permutes,
                                    .epoch_batches = exact_order_options::endless}));
    s.counts.clear();
  }
  schedule_ = mix_schedule::of({options_.sources, options_.on_exhausted}, std::move(passes));
  if (!schedule_) compute_phases(mix_pattern::shares_of(options_.sources));
  set_length();
}

MILLRACE_INLINE std::uint64_t mix_plan::window() const noexcept {
  std::uint64_t all = 0;
  for (const mix_source_spec& s : options_.sources) all += s.window;
  return all;
}

MILLRACE_INLINE std::string mix_plan::window_notice() const {
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (const std::string notice = sources_[i].window_notice(); !notice.empty())
      return "source " + std::to_string(i) + " of the mix: " + notice;
  return {};
}

MILLRACE_INLINE std::uint64_t mix_plan::batches() const noexcept {
  if (positions_ == exact_order_options::endless) return positions_;
  return (positions_ + options_.global_batch - 1) / options_.global_batch;
}

MILLRACE_INLINE std::size_t mix_plan::rows(std::uint64_t batch, const world& mine) const noexcept {
  if (batch >= batches()) return 0;
  const std::uint64_t all = std::min<std::uint64_t>(positions_ - batch * options_.global_batch, options_.global_batch);
  return static_cast<std::size_t>(exact_order::share(all, mine));
}

MILLRACE_INLINE void mix_plan::check(const world& r) const {
  if (r.size == 0 || r.rank >= r.size)
    throw setup_error("the world is invalid: got " + r.describe(),
                      "Set world::rank to a number from 0 to world::size - 1");
  if (options_.global_batch % r.size != 0)
    throw setup_error("the global batch of " + std::to_string(options_.global_batch) + " is not divisible by " +
                          std::to_string(r.size) + " ranks",
                      "Choose a global batch that is a multiple of the number of ranks");
}

MILLRACE_INLINE mix_plan::phase mix_plan::phase_at(std::uint64_t at) const {
  if (schedule_) return schedule_->phase_at(at);
  const auto after = std::upper_bound(phases_.begin(), phases_.end(), at,
                                      [](std::uint64_t position, const mix_phase& p) { return position < p.begin; });
  return phase(phase(), &*(after - 1));   // the plan owns it
}

MILLRACE_INLINE std::uint64_t mix_plan::ordinal_of(std::uint64_t epoch, std::uint64_t position) const {
  if (position > positions_) throw_out_of_range(position);
  const bool one_epoch = positions_ == exact_order_options::endless;
  if (one_epoch ? epoch > 0 : epoch > max_positions / positions_)
    throw setup_error("epoch " + std::to_string(epoch) + " does not exist",
                      "Choose a smaller epoch. An endless run has only epoch 0");
  return cycles() && !one_epoch ? epoch * positions_ + position : position;
}

MILLRACE_INLINE std::vector<std::uint64_t> mix_plan::counts_before(std::uint64_t epoch, std::uint64_t position) const {
  const std::uint64_t at = ordinal_of(epoch, position);
  const phase p = phase_at(at);
  std::vector<std::uint64_t> counts = p->pattern.counts_before(at - p->begin);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i] += p->counts_before[i];
    if (!cycles()) counts[i] += epoch * sources_[i].samples();
  }
  return counts;
}

MILLRACE_INLINE std::vector<std::uint64_t> mix_plan::counts_of(const world& mine, std::uint64_t epoch,
                                                               std::uint64_t begin, std::uint64_t end) const {
  if (schedule_) {
    const std::uint64_t first = ordinal_of(epoch, begin);
    return schedule_->counts_of(mine, first, first + (end - begin));
  }
  std::vector<std::uint64_t> counts(sources_.size(), 0);
  std::uint64_t at = begin + (mine.rank + mine.size - begin % mine.size) % mine.size;
  while (at < end) {
    const std::uint64_t ordinal = ordinal_of(epoch, at);
    const phase p = phase_at(ordinal);
    const std::uint64_t left = std::min(end - at, p->end - ordinal);
    const auto some = p->pattern.counts(ordinal - p->begin, ordinal - p->begin + left, mine.size);
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += some[i];
    at += (left + mine.size - 1) / mine.size * mine.size;
  }
  return counts;
}

MILLRACE_INLINE mix_plan::spot mix_plan::spot_of(std::uint64_t epoch, std::uint64_t position) const {
  if (position == positions_) throw_out_of_range(position);
  const std::uint64_t at = ordinal_of(epoch, position);
  const phase p = phase_at(at);
  const std::size_t source = p->pattern.source_at(at - p->begin);
  return {source, counts_before(epoch, position)[source]};
}

MILLRACE_INLINE ordered_sample mix_plan::sample_at(std::uint64_t epoch, std::uint64_t position) const {
  const spot s = spot_of(epoch, position);
  ordered_sample result = sources_[s.source].sample_at(0, s.number);
  result.epoch = epoch;
  result.position = position;
  result.sample.shard += first_shards_[s.source];
  return result;
}

MILLRACE_INLINE void mix_plan::throw_out_of_range(std::uint64_t position) const {
  throw setup_error("position " + std::to_string(position) + " is out of range: an epoch has " +
                        std::to_string(positions_) + " positions",
                    "Choose a position from 0 to the number of positions minus 1");
}

MILLRACE_INLINE std::vector<std::uint64_t> mix_plan::ends_of(const mix_phase& p) const {
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < sources_.size(); ++i) numbers.push_back(sources_[i].samples() - p.counts_before[i] - 1);
  std::vector<std::uint64_t> ends = p.pattern.positions_of(numbers);
  for (std::uint64_t& end : ends) ++end;
  return ends;
}

MILLRACE_INLINE std::pair<std::size_t, std::uint64_t> mix_plan::first_exhausted(const mix_phase& p) const {
  std::pair<std::size_t, std::uint64_t> first{0, ~std::uint64_t{0}};
  const std::vector<std::uint64_t> ends = ends_of(p);
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (p.pattern.shares()[i] > 0 && ends[i] < first.second) first = {i, ends[i]};
  return first;
}

MILLRACE_INLINE void mix_plan::compute_phases(std::vector<std::uint64_t> shares) {
  phases_.push_back({0, mix_pattern(shares), std::vector<std::uint64_t>(sources_.size(), 0)});
  std::tie(measure_, positions_) = first_exhausted(phases_.front());
  if (options_.on_exhausted != exhausted::reweight) return;
  for (std::size_t left = sources_.size(); left > 1; --left) {
    shares[measure_] = 0;
    mix_phase& before = phases_.back();
    before.end = positions_;
    std::vector<std::uint64_t> counts = before.pattern.counts_before(positions_ - before.begin);
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += before.counts_before[i];
    phases_.push_back({positions_, mix_pattern(shares), std::move(counts)});
    const auto [next, length] = first_exhausted(phases_.back());
    measure_ = next;
    positions_ += length;
  }
}

MILLRACE_INLINE void mix_plan::set_length() {
  const std::uint64_t batch = options_.global_batch;
  std::uint64_t pass = 0;
  if (schedule_ && (!cycles() || options_.epoch_batches == exact_order_options::exact_pass))
    std::tie(measure_, pass) = schedule_->first_pass();
  if (!cycles()) {
    if (schedule_) positions_ = pass;
    if (options_.epoch_batches != exact_order_options::exact_pass)
      throw setup_error("session_options::epoch_batches needs sources that restart when they run out",
                        "Set mix_options::on_exhausted to exhausted::repeat");
    if (options_.drop_last) dropped_ = positions_ % batch;
    positions_ -= dropped_;
    if (positions_ == 0)
      throw setup_error("an epoch of the mix has fewer samples than the global batch of " + std::to_string(batch) +
                            ", and drop_last drops them",
                        "Use a smaller batch, more data, exhausted::repeat, or batch({.drop_last = false})");
    return;
  }
  if (!schedule_) {
    const std::vector<std::uint64_t> ends = ends_of(phases_.front());
    measure_ = static_cast<std::size_t>(std::max_element(ends.begin(), ends.end()) - ends.begin());
    pass = ends[measure_];
  }
  if (options_.epoch_batches == exact_order_options::endless) {
    positions_ = exact_order_options::endless;
  } else if (options_.epoch_batches != exact_order_options::exact_pass) {
    if (options_.epoch_batches > max_positions / batch)
      throw setup_error("an epoch of " + std::to_string(options_.epoch_batches) + " batches is too long",
                        "Lower session_options::epoch_batches, or set it to endless");
    positions_ = options_.epoch_batches * batch;
  } else {
    positions_ = (pass + batch - 1) / batch * batch;
  }
}

}}}   // namespace millrace::detail
