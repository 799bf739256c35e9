// Definitions for mix_pattern.hpp.
#pragma once

#include <millrace/order/mix_pattern.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/half.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE mix_pattern::mix_pattern(std::vector<std::uint64_t> shares) : shares_(std::move(shares)) {
  const std::uint64_t common = std::accumulate(shares_.begin(), shares_.end(), std::uint64_t{0},
                                               [](std::uint64_t a, std::uint64_t b) { return std::gcd(a, b); });
  for (std::uint64_t& share : shares_) share /= common;
  assign_sources(std::accumulate(shares_.begin(), shares_.end(), std::uint64_t{0}));
}

MILLRACE_INLINE std::vector<std::uint64_t> mix_pattern::counts(std::uint64_t begin, std::uint64_t end,
                                                               std::uint64_t stride) const {
  std::vector<std::uint64_t> totals(shares_.size(), 0);
  if (begin >= end) return totals;
  // After `cycle` strides, the walk reaches the same point of the pattern again.
  const std::uint64_t steps = (end - begin - 1) / stride + 1, cycle = period() / std::gcd(period(), stride);
  const auto add = [&](std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t at = (begin + first % cycle * stride) % period(); count > 0; --count) {
      ++totals[sources_[at]];
      at = (at + stride) % period();
    }
  };
  if (steps >= cycle) {
    add(0, cycle);
    for (std::uint64_t& count : totals) count *= steps / cycle;
  }
  add(steps / cycle * cycle, steps % cycle);
  return totals;
}

MILLRACE_INLINE std::vector<std::uint64_t> mix_pattern::positions_of(const std::vector<std::uint64_t>& numbers) const {
  std::vector<std::uint64_t> positions(shares_.size(), 0), left(shares_.size(), 0);
  for (std::size_t i = 0; i < left.size(); ++i)
    if (shares_[i] > 0) left[i] = numbers[i] % shares_[i];
  for (std::uint64_t at = 0; at < period(); ++at)
    if (const std::size_t i = sources_[at]; left[i]-- == 0) positions[i] = numbers[i] / shares_[i] * period() + at;
  return positions;
}

MILLRACE_INLINE void mix_pattern::check_weight(double weight) {
  if (!is_finite(weight) || weight <= 0)
    throw setup_error("a source of a mix has an invalid weight: got " + std::to_string(weight),
                      "Set a weight above 0, or omit the source");
}

MILLRACE_INLINE std::vector<std::uint64_t> mix_pattern::shares_of(const std::vector<double>& weights) {
  if (weights.empty()) throw setup_error("a mix has no sources", "Add at least one source");
  double all = 0;
  for (const double weight : weights) {
    check_weight(weight);
    all += weight;
  }
  const auto longest = static_cast<double>(longest_period);
  for (const double weight : weights)
    if (!(longest * weight / all >= 1))
      throw setup_error("a source of a mix has a share of less than 1 / " + std::to_string(longest_period),
                        "Increase its weight, or omit the source");
  for (std::uint64_t sum = weights.size(); sum <= longest_period; ++sum)
    if (std::vector<std::uint64_t> exact = exact_shares(weights, all, sum); !exact.empty()) return exact;
  return rounded_shares(weights, all);
}

MILLRACE_INLINE std::vector<std::uint64_t> mix_pattern::shares_of(const std::vector<mix_source_spec>& sources) {
  std::vector<double> weights;
  for (const mix_source_spec& s : sources) weights.push_back(s.weight.at(0));
  return shares_of(weights);
}

MILLRACE_INLINE std::vector<std::uint64_t> mix_pattern::exact_shares(const std::vector<double>& weights, double all,
                                                                     std::uint64_t sum) {
  constexpr double close = 1e-6;
  for (const double weight : weights) {
    const double share = static_cast<double>(sum) * weight / all;
    if (share < 0.5 || std::fabs(share - std::nearbyint(share)) > close) return {};
  }
  std::vector<std::uint64_t> shares;
  shares.reserve(weights.size());
  for (const double weight : weights)
    shares.push_back(static_cast<std::uint64_t>(std::nearbyint(static_cast<double>(sum) * weight / all)));
  return shares;
}

MILLRACE_INLINE std::vector<std::uint64_t> mix_pattern::rounded_shares(const std::vector<double>& weights, double all) {
  std::vector<std::uint64_t> shares;
  std::vector<std::pair<double, std::size_t>> remainders;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double share = static_cast<double>(longest_period) * weights[i] / all;
    shares.push_back(static_cast<std::uint64_t>(share));
    remainders.emplace_back(std::floor(share) - share, i);
  }
  std::sort(remainders.begin(), remainders.end());
  const std::uint64_t assigned = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
  for (std::uint64_t i = 0; i < longest_period - assigned; ++i) ++shares[remainders[i % remainders.size()].second];
  return shares;
}

MILLRACE_INLINE void mix_pattern::assign_sources(std::uint64_t period) {
  // Sample n of a source is released when its lag, the positions due so far minus n, is 1 / scale. Its deadline, in
  // positions * scale, is deadline / share * period. Released samples are in a heap, the others in a list by position.
  // The shares of two sources have a sum of at most 2^18, so their product is at most 2^34, and different quotients
  // deadline / share differ by at least 2^-34. Therefore `key`, the quotient in units of 2^-34 rounded down, has the
  // order of the quotients. It is below 2^51.
  struct candidate {
    std::uint64_t key;
    std::uint16_t source;
  };
  const auto is_later = [](const candidate& a, const candidate& b) {   // no branches, which are hard to predict
    return (a.key > b.key) | ((a.key == b.key) & (a.source > b.source));
  };
  const auto key_of = [](std::uint64_t deadline, std::uint64_t share) {
    return (deadline / share << 34) + (deadline % share << 34) / share;
  };
  constexpr std::uint32_t none = ~std::uint32_t{0};
  const std::size_t positive = shares_.size() - static_cast<std::size_t>(std::count(shares_.begin(), shares_.end(), 0));
  const std::uint64_t scale = 2 * static_cast<std::uint64_t>(positive) - 2;
  std::vector<std::uint32_t> released_at(period, none), next(shares_.size(), none);
  std::vector<std::uint64_t> received(shares_.size(), 0);
  const auto release = [&](std::size_t i, std::uint64_t earliest) {
    const std::uint64_t step = std::max<std::uint64_t>(scale, 1) * shares_[i];
    const std::uint64_t at = std::max(earliest, (period * (1 + received[i] * scale) + step - 1) / step - 1);
    if (at >= period) return;
    next[i] = std::exchange(released_at[at], static_cast<std::uint32_t>(i));
  };
  for (std::size_t i = 0; i < shares_.size(); ++i)
    if (shares_[i] > 0) release(i, 0);
  std::vector<candidate> ready;
  sources_.reserve(period);
  for (std::uint64_t position = 0; position < period; ++position) {
    for (std::uint32_t i = released_at[position]; i != none; i = next[i]) {
      ready.push_back({key_of(scale - 1 + received[i] * scale, shares_[i]), static_cast<std::uint16_t>(i)});
      std::push_heap(ready.begin(), ready.end(), is_later);
    }
    std::pop_heap(ready.begin(), ready.end(), is_later);
    const std::size_t first = ready.back().source;
    ready.pop_back();
    sources_.push_back(static_cast<std::uint16_t>(first));
    ++received[first];
    if (received[first] < shares_[first]) release(first, position + 1);
  }
}

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
