// Definitions for mix_schedule.hpp.
#pragma once

#include <millrace/order/mix_schedule.hpp>

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <utility>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE bool mix_schedule::changes(const std::vector<mix_source_spec>& sources) {
  return std::any_of(sources.begin(), sources.end(), [](const auto& s) { return !s.weight.is_constant(); });
}

MILLRACE_INLINE bool mix_schedule::is_needed(const std::vector<mix_source_spec>& sources) {
  return sources.size() > pattern_sources || changes(sources);
}

MILLRACE_INLINE std::vector<std::uint64_t> mix_schedule::weight_keys(const std::vector<mix_source_spec>& sources) {
  if (!is_needed(sources)) return mix_pattern::shares_of(sources);
  std::vector<std::uint64_t> keys;
  for (const mix_source_spec& s : sources) {
    if (s.weight.is_constant()) mix_pattern::check_weight(s.weight.at(0));
    keys.push_back(s.weight.fingerprint());
  }
  return keys;
}

MILLRACE_INLINE std::shared_ptr<const mix_schedule> mix_schedule::of(const mix_rule& rule,
                                                                     std::vector<std::uint64_t> samples) {
  if (!is_needed(rule.sources) || (samples.empty() && !changes(rule.sources))) return nullptr;
  return std::make_shared<const mix_schedule>(rule, std::move(samples));
}

MILLRACE_INLINE mix_schedule::mix_schedule(const mix_rule& rule, std::vector<std::uint64_t> samples)
    : on_exhausted_(rule.on_exhausted), samples_(std::move(samples)) {
  for (const mix_source_spec& s : rule.sources) {
    if (!s.weight.is_constant()) {
      if (on_exhausted_ != exhausted::repeat)
        throw setup_error("the weights of a mix change during the run, but its sources do not repeat",
                          "Set mix_options::on_exhausted to exhausted::repeat");
    } else {
      mix_pattern::check_weight(s.weight.at(0));
    }
    names_.push_back(s.name.empty() ? "source " + std::to_string(weights_.size()) : s.name);
    weights_.push_back(s.weight);
    for (const source_weight::point& p : s.weight.points()) knots_.push_back(p.position);
  }
  if (weights_.size() > mix_pattern::longest_period)
    throw setup_error("a mix whose weights change during the run has too many sources: got " +
                          std::to_string(weights_.size()) + ", expected at most " +
                          std::to_string(mix_pattern::longest_period),
                      "Combine sources of equal weights into one list of shards");
  std::sort(knots_.begin(), knots_.end());
  knots_.erase(std::unique(knots_.begin(), knots_.end()), knots_.end());
  while (block_ < 4 * weights_.size()) block_ *= 2;
  walk_ = start();
}

MILLRACE_INLINE mix_schedule::walk mix_schedule::start() const {
  walk w;
  w.counts.assign(weights_.size(), 0);
  w.quotas.assign(weights_.size(), 0);
  w.lags.assign(weights_.size(), 0);
  advance(w);
  return w;
}

MILLRACE_INLINE std::uint64_t mix_schedule::block_end(std::uint64_t begin) const {
  const auto knot = std::upper_bound(knots_.begin(), knots_.end(), begin);
  if (knot == knots_.begin() || knot == knots_.end()) return (begin / block_ + 1) * block_;
  const std::uint64_t part = std::bit_floor((*knot - *(knot - 1)) / 64);
  const std::uint64_t size = std::min(block_, std::max<std::uint64_t>(part, 16));
  return std::min(*knot, (begin / size + 1) * size);
}

MILLRACE_INLINE void mix_schedule::advance(walk& at) const {
  constexpr std::int64_t unit = std::int64_t{1} << 32;
  const std::size_t sources = weights_.size();
  const std::uint64_t begin = at.end, end = block_end(begin);
  const bool repeats = on_exhausted_ == exhausted::repeat;
  std::vector<double> weights(sources);
  std::size_t exhausted_sources = 0;
  double all = 0;
  std::size_t largest = 0;
  for (std::size_t i = 0; i < sources; ++i) {
    const double weight = weights_[i].mean(begin, end);
    if (!is_finite(weight) || weight < 0)
      throw setup_error("the weight of " + names_[i] + " of the mix is invalid at position " + std::to_string(begin) +
                            ": got " + std::to_string(weight),
                        "Return a weight of at least 0");
    if (!repeats && at.is_exhausted(i, samples_)) {
      ++exhausted_sources;
      continue;
    }
    weights[i] = weight;
    all += weight;
    if (weight > weights[largest]) largest = i;
  }
  if (exhausted_sources == sources || (exhausted_sources > 0 && on_exhausted_ == exhausted::stop)) {
    for (std::size_t i = 0; i < sources; ++i) at.counts[i] += std::exchange(at.quotas[i], 0);
    at.begin = begin;
    at.end = ~std::uint64_t{0};
    return;
  }
  if (!(all > 0) || !is_finite(all))
    throw setup_error("the sum of the weights of the mix is invalid at position " + std::to_string(begin) + ": got " +
                          std::to_string(all),
                      "Set at least one weight above 0 at each position");

  for (std::size_t i = 0; i < sources; ++i) at.counts[i] += at.quotas[i];
  at.begin = begin;
  at.end = end;
  const auto size = static_cast<std::int64_t>(end - begin);
  std::int64_t shares = unit, left = size;
  std::vector<std::pair<std::int64_t, std::size_t>> order(sources);
  for (std::size_t i = 0; i < sources; ++i) {
    const auto share = static_cast<std::int64_t>(weights[i] / all * static_cast<double>(unit));
    shares -= share;
    at.lags[i] += share * size;
  }
  at.lags[largest] += shares * size;   // fractions of a unit
  for (std::size_t i = 0; i < sources; ++i) {
    const std::int64_t quota = std::max<std::int64_t>(0, at.lags[i] >> 32);
    at.quotas[i] = static_cast<std::uint64_t>(quota);
    at.lags[i] -= quota * unit;
    left -= quota;
    order[i] = {-at.lags[i], i};
  }
  while (left != 0) {
    // Each round changes each source by at most one sample: first the largest lags or, if too many were assigned, last.
    if (left < 0) std::erase_if(order, [&](const auto& o) { return at.quotas[o.second] == 0; });
    const auto some = std::min(static_cast<std::size_t>(left < 0 ? -left : left), order.size());
    const auto part = static_cast<std::ptrdiff_t>(some);
    std::nth_element(order.begin(), order.begin() + part - 1, order.end(),
                     [&](const auto& a, const auto& b) { return left > 0 ? a < b : b < a; });
    const std::int64_t step = left > 0 ? 1 : -1;
    for (std::size_t n = 0; n < some; ++n) {
      const std::size_t i = order[n].second;
      at.quotas[i] += static_cast<std::uint64_t>(step);
      at.lags[i] -= step * unit;
      order[n].first = -at.lags[i];
      left -= step;
    }
  }
  if (!repeats) cut(at);
}

MILLRACE_INLINE std::vector<std::uint64_t> mix_schedule::ends_in(const walk& at, const mix_pattern& pattern) const {
  std::vector<std::uint64_t> numbers(samples_.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = samples_[i] - at.counts[i] - 1;
  std::vector<std::uint64_t> ends = pattern.positions_of(numbers);
  for (std::uint64_t& end : ends) end += at.begin + 1;
  return ends;
}

MILLRACE_INLINE void mix_schedule::cut(walk& at) const {
  std::uint64_t end = at.end;
  std::optional<mix_pattern> pattern;
  std::vector<std::uint64_t> ends;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (at.counts[i] >= samples_[i] || !at.is_exhausted(i, samples_)) continue;
    if (!pattern) ends = ends_in(at, pattern.emplace(at.quotas));
    end = std::min(end, ends[i]);
  }
  if (!pattern) return;
  at.quotas = pattern->counts_before(end - at.begin);
  at.end = end;
  std::fill(at.lags.begin(), at.lags.end(), 0);
}

MILLRACE_INLINE void mix_schedule::move_to(std::uint64_t position) const {
  if (position < walk_.begin) {
    const auto after = std::upper_bound(checkpoints_.begin(), checkpoints_.end(), position,
                                        [](std::uint64_t at, const walk& w) { return at < w.begin; });
    walk_ = after == checkpoints_.begin() ? start() : *(after - 1);
  }
  while (walk_.end <= position) {
    advance(walk_);
    if (walk_.begin < next_checkpoint_) continue;
    checkpoints_.push_back(walk_);
    next_checkpoint_ = walk_.begin + spacing_;
    const std::size_t bytes = checkpoints_.size() * weights_.size() * 3 * sizeof(std::uint64_t);
    if (bytes <= std::size_t{4} << 20 || checkpoints_.size() < 16) continue;
    for (std::size_t i = 0; 2 * i < checkpoints_.size(); ++i)
      if (i > 0) checkpoints_[i] = std::move(checkpoints_[2 * i]);
    checkpoints_.resize((checkpoints_.size() + 1) / 2);
    spacing_ *= 2;
  }
}

MILLRACE_INLINE std::shared_ptr<const mix_phase> mix_schedule::phase_at(std::uint64_t position) const {
  const std::lock_guard lock(mutex_);
  if (last_ && last_->begin <= position && position < last_->end) return last_;
  move_to(position);
  std::vector<std::uint64_t> shares = walk_.quotas;
  if (walk_.end == ~std::uint64_t{0}) shares[0] = 1;   // after the end of an epoch
  last_ = std::make_shared<mix_phase>(mix_phase{walk_.begin, mix_pattern(std::move(shares)), walk_.counts, walk_.end});
  return last_;
}

MILLRACE_INLINE std::vector<std::uint64_t> mix_schedule::counts_of(const world& mine, std::uint64_t begin,
                                                                   std::uint64_t end) const {
  const std::lock_guard lock(counts_mutex_);
  rank_counts* counted = nullptr;
  for (rank_counts& c : counted_)
    if (c.mine.rank == mine.rank && c.mine.size == mine.size && c.begin == begin && c.end <= end && !c.counts.empty() &&
        (!counted || c.end > counted->end))
      counted = &c;
  if (!counted) {
    counted = &counted_[oldest_counted_++ % counted_.size()];
    *counted = {mine, begin, begin, std::vector<std::uint64_t>(weights_.size(), 0)};
  }
  while (counted->end < end) {
    const std::uint64_t from = counted->end;
    const auto phase = phase_at(from);
    const std::uint64_t to = std::min(end, phase->end);
    const std::uint64_t first = from + (mine.rank + mine.size - from % mine.size) % mine.size;
    if (first < to) {
      const auto some = phase->pattern.counts(first - phase->begin, to - phase->begin, mine.size);
      for (std::size_t i = 0; i < some.size(); ++i) counted->counts[i] += some[i];
    }
    counted->end = to;
  }
  return counted->counts;
}

MILLRACE_INLINE bool mix_schedule::has_final_weights(std::uint64_t begin) const {
  return begin >= knots_.back() &&
         std::none_of(weights_.begin(), weights_.end(), [](const source_weight& w) { return w.is_function(); });
}

MILLRACE_INLINE std::optional<std::size_t> mix_schedule::endless_source(const walk& at,
                                                                        std::span<const std::size_t> sources) const {
  constexpr double tolerance = 16;   // samples; more than a source can be ahead of its share
  double all = 0;
  for (const source_weight& w : weights_) all += w.at(at.begin);
  for (const std::size_t i : sources) {
    const auto left = static_cast<double>(samples_[i]) - static_cast<double>(at.counts[i]) - tolerance;
    const double share = weights_[i].at(at.begin) / all;
    if (left > share * static_cast<double>(longest_epoch - at.begin)) return i;
  }
  return std::nullopt;
}

MILLRACE_INLINE std::pair<std::size_t, std::uint64_t> mix_schedule::first_pass() const {
  std::pair<std::size_t, std::uint64_t> last{0, 0};
  std::vector<std::size_t> open(weights_.size());
  std::iota(open.begin(), open.end(), std::size_t{0});
  const auto fail = [this](std::size_t source, std::uint64_t positions) {
    throw setup_error(names_[source] + " of the mix does not complete a pass within " + std::to_string(positions) +
                          " positions. Therefore an epoch does not end",
                      "Set session_options::epoch_batches");
  };
  bool is_checked = false;
  for (walk at = start(); !open.empty(); advance(at)) {
    if (at.begin >= longest_epoch) fail(open.front(), at.begin);
    if (!is_checked && on_exhausted_ == exhausted::repeat && !knots_.empty() && has_final_weights(at.begin)) {
      is_checked = true;
      if (const auto i = endless_source(at, open)) fail(*i, longest_epoch);
    }
    std::vector<std::uint64_t> ends;   // thousands of sources may complete their passes in the block
    std::erase_if(open, [&](std::size_t i) {
      if (!at.is_exhausted(i, samples_)) return false;
      if (ends.empty()) ends = ends_in(at, mix_pattern(at.quotas));
      if (ends[i] > last.second) last = {i, ends[i]};
      return true;
    });
    if (on_exhausted_ == exhausted::stop && last.second > 0) break;
  }
  return last;
}

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
