// Which of several sources each position belongs to, so that every stretch of positions holds their shares.
//
//   mix_pattern pattern({7, 3});                       // of ten positions seven are source 0's, three source 1's
//   pattern.source_at(1'000'003);                      // a pure function of the position
//   pattern.counts_before(1'000'003);                  // how many of them each source had
//   pattern.position_of(1, 300'000);                   // where source 1 has its 300,000th, counted from 0
//   mix_pattern::shares_of({0.7, 0.3});                // {7, 3}
//
// Shares are whole numbers, so the pattern repeats after their sum, exactly, on every machine. The first n positions
// hold each source n * share / sum times, less than 1 off (1 - 1 / (2 k - 2) at most with k sources). So any n
// consecutive ones do to within 1 with two sources, and to within 2 - 1 / (k - 1) with more: 1 cannot be had for three
// in general (7 : 3 : 1 has no such sequence of ten).
// Source: R. Tijdeman, The chairman assignment problem, Discrete Mathematics 32 (1980): of the sources that may come,
// the one that has to come first; here in whole numbers, and of equals the first.
// Costs: 2 bytes for each position of the period, which is 65,536 at most. source_at() is a look-up, the others scan a
// period. Errors: setup_error for weights that make no shares. Threads: immutable.
#pragma once

#include <millrace/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

class mix_pattern {
 public:
  static constexpr std::uint64_t longest_period = 65'536;

  /// A share of 0 is never met; one at least is more. Their sum, divided by what they have in common, is
  /// longest_period at most.
  explicit mix_pattern(std::vector<std::uint64_t> shares) : shares_(std::move(shares)) {
    const std::uint64_t common = std::accumulate(shares_.begin(), shares_.end(), std::uint64_t{0},
                                                 [](std::uint64_t a, std::uint64_t b) { return std::gcd(a, b); });
    for (std::uint64_t& share : shares_) share /= common;
    lay_out(std::accumulate(shares_.begin(), shares_.end(), std::uint64_t{0}));
  }

  const std::vector<std::uint64_t>& shares() const noexcept { return shares_; }
  std::uint64_t period() const noexcept { return sources_.size(); }

  std::size_t source_at(std::uint64_t position) const noexcept { return sources_[position % sources_.size()]; }

  std::vector<std::uint64_t> counts_before(std::uint64_t position) const { return counts(0, position, 1); }

  /// Of each source in begin, begin + stride, ... below end.
  std::vector<std::uint64_t> counts(std::uint64_t begin, std::uint64_t end, std::uint64_t stride) const {
    std::vector<std::uint64_t> found(shares_.size(), 0);
    if (begin >= end) return found;
    // After so many steps the pattern is met at the same place again.
    const std::uint64_t steps = (end - begin - 1) / stride + 1, cycle = period() / std::gcd(period(), stride);
    const auto add = [&](std::uint64_t first, std::uint64_t count) {
      for (std::uint64_t at = (begin + first % cycle * stride) % period(); count > 0; --count) {
        ++found[sources_[at]];
        at = (at + stride) % period();
      }
    };
    if (steps >= cycle) {
      add(0, cycle);
      for (std::uint64_t& count : found) count *= steps / cycle;
    }
    add(steps / cycle * cycle, steps % cycle);
    return found;
  }

  std::uint64_t position_of(std::size_t source, std::uint64_t number) const noexcept {
    std::uint64_t at = 0;
    for (std::uint64_t left = number % shares_[source];; ++at)
      if (sources_[at] == source && left-- == 0) break;
    return number / shares_[source] * period() + at;
  }

  /// Whole numbers in the proportion of the weights: of the smallest sum that gives them exactly (to a millionth of a
  /// share), and where no sum up to longest_period does, of that one, rounded.
  static std::vector<std::uint64_t> shares_of(const std::vector<double>& weights) {
    if (weights.empty()) throw setup_error("a mix of no sources has no samples", "Give it at least one");
    double all = 0;
    for (const double weight : weights) {
      if (!std::isfinite(weight) || weight <= 0)
        throw setup_error("a source of a mix has the weight " + std::to_string(weight),
                          "Weights are greater than 0; leave out a source that is not wanted");
      all += weight;
    }
    const auto longest = static_cast<double>(longest_period);
    for (const double weight : weights)
      if (!(longest * weight / all >= 1))
        throw setup_error("a source of a mix has a share of less than 1 / " + std::to_string(longest_period),
                          "Give it more weight, or leave it out");
    for (std::uint64_t sum = weights.size(); sum <= longest_period; ++sum)
      if (std::vector<std::uint64_t> exact = exact_shares(weights, all, sum); !exact.empty()) return exact;
    return rounded_shares(weights, all);
  }

 private:
  static std::vector<std::uint64_t> exact_shares(const std::vector<double>& weights, double all, std::uint64_t sum) {
    constexpr double close = 1e-6;
    for (const double weight : weights) {
      const double share = static_cast<double>(sum) * weight / all;
      if (share < 0.5 || std::fabs(share - std::nearbyint(share)) > close) return {};
    }
    std::vector<std::uint64_t> shares;
    for (const double weight : weights)
      shares.push_back(static_cast<std::uint64_t>(std::nearbyint(static_cast<double>(sum) * weight / all)));
    return shares;
  }

  /// The largest remainders are rounded up.
  static std::vector<std::uint64_t> rounded_shares(const std::vector<double>& weights, double all) {
    std::vector<std::uint64_t> shares;
    std::vector<std::pair<double, std::size_t>> remainders;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double share = static_cast<double>(longest_period) * weights[i] / all;
      shares.push_back(static_cast<std::uint64_t>(share));
      remainders.emplace_back(std::floor(share) - share, i);
    }
    std::sort(remainders.begin(), remainders.end());
    const std::uint64_t given = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
    for (std::uint64_t i = 0; i < longest_period - given; ++i) ++shares[remainders[i % remainders.size()].second];
    return shares;
  }

  void lay_out(std::uint64_t period) {
    struct candidate {
      std::uint16_t source;
      std::int64_t share, lag;   // lag: what it has been due so far less what it had, in 1/period of a position
    };
    std::vector<candidate> all;
    for (std::size_t i = 0; i < shares_.size(); ++i)
      if (shares_[i] > 0) all.push_back({static_cast<std::uint16_t>(i), static_cast<std::int64_t>(shares_[i]), 0});
    const auto whole = static_cast<std::int64_t>(period), scale = static_cast<std::int64_t>(2 * all.size()) - 2;
    sources_.reserve(period);
    for (std::uint64_t position = 0; position < period; ++position) {
      candidate* first = nullptr;
      std::int64_t first_slack = 0;
      for (candidate& c : all) {
        c.lag += c.share;
        if (scale * c.lag < whole) continue;   // too early
        const std::int64_t slack = whole * (scale - 1) - scale * c.lag;   // in steps, times scale and share
        if (first && slack * first->share >= first_slack * c.share) continue;
        first = &c;
        first_slack = slack;
      }
      if (!first) first = &all.front();   // a single source
      first->lag -= whole;
      sources_.push_back(first->source);
    }
  }

  std::vector<std::uint64_t> shares_;
  std::vector<std::uint16_t> sources_;   // of one period
};

}}  // namespace millrace
