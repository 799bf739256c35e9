// Assigns each position to one of several sources, so that every interval of positions holds their shares.
//
//   mr::detail::mix_pattern pattern({7, 3});           // of ten positions, seven are source 0's and three source 1's
//   pattern.source_at(1'000'003);                      // a pure function of the position
//   pattern.counts_before(1'000'003);                  // positions of each source before this one
//   pattern.position_of(1, 300'000);                   // position of sample 300,000 of source 1, counted from 0
//   mr::detail::mix_pattern::shares_of({0.7, 0.3});    // {7, 3}
//
// Shares are whole numbers. So the pattern repeats exactly after their sum, on every machine. The first n positions
// hold each source n * share / sum times, with an error below 1. With k sources the error is at most 1 - 1 / (2 k - 2).
// Any n consecutive positions are exact to within 1 with two sources. With more sources they are exact to within
// 2 - 1 / (k - 1). Exact to within 1 is impossible for three in general: 7 : 3 : 1 has no such sequence of length ten.
// Source: R. Tijdeman, The chairman assignment problem, Discrete Mathematics 32 (1980): among the sources that may
// come, take the one with the earliest deadline. This version uses whole numbers; equal deadlines go to the first.
// Costs: 2 bytes for each position of the period; the period is at most 65,536. source_at() is a look-up. The other
// members scan a period.
// Errors: shares_of() throws setup_error for weights that make no shares. Threads: immutable.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/version.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Says how sources are mixed: their weights, and the behavior when a source runs out.
//
//   mix_rule rule{.sources = {{.weight = 0.7, .name = "photos"}, {.weight = 0.3}},
//                 .on_exhausted = mr::exhausted::repeat};
//
// order/mix_plan.hpp describes the effect of each value of `exhausted`.

/// The behavior of a mix when one of its sources runs out: end the epoch, repeat the source, or reweight the others.
enum class exhausted : std::uint8_t { stop, repeat, reweight };

/// One source of a mix: its weight, the seed and window of its shuffle, and what it holds.
struct mix_source_spec {
  double weight = 1;
  std::uint64_t seed = 0;
  std::vector<std::uint64_t> counts{};   ///< samples of each shard; empty where they are not known
  std::size_t window = 0;                ///< shuffle window in samples; 0: not shuffled
  std::string name{};                    ///< name for messages and reports; empty: the number of the source
};
/// The sources of a mix, and the behavior when one runs out.
struct mix_rule {
  std::vector<mix_source_spec> sources{};
  exhausted on_exhausted = exhausted::stop;
};

/// A periodic assignment of positions to sources.
class mix_pattern {
 public:
  /// Upper limit of the period.
  static constexpr std::uint64_t longest_period = 65'536;

  /// A source with the share 0 never comes; at least one share must be greater. The sum of the shares, divided by their
  /// greatest common divisor, must be at most longest_period.
  explicit mix_pattern(std::vector<std::uint64_t> shares) : shares_(std::move(shares)) {
    const std::uint64_t common = std::accumulate(shares_.begin(), shares_.end(), std::uint64_t{0},
                                                 [](std::uint64_t a, std::uint64_t b) { return std::gcd(a, b); });
    for (std::uint64_t& share : shares_) share /= common;
    lay_out(std::accumulate(shares_.begin(), shares_.end(), std::uint64_t{0}));
  }

  /// Returns the shares, divided by their greatest common divisor.
  const std::vector<std::uint64_t>& shares() const noexcept { return shares_; }
  /// Returns the number of positions after which the pattern repeats.
  std::uint64_t period() const noexcept { return sources_.size(); }

  /// Returns the source of a position.
  std::size_t source_at(std::uint64_t position) const noexcept { return sources_[position % sources_.size()]; }

  /// Returns, for each source, its number of positions below `position`.
  std::vector<std::uint64_t> counts_before(std::uint64_t position) const { return counts(0, position, 1); }

  /// Returns, for each source, its number of positions among begin, begin + stride, ... below `end`.
  std::vector<std::uint64_t> counts(std::uint64_t begin, std::uint64_t end, std::uint64_t stride) const {
    std::vector<std::uint64_t> found(shares_.size(), 0);
    if (begin >= end) return found;
    // After `cycle` strides the walk meets the same point of the pattern again.
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

  /// Returns the position of sample `number` of a source, counted from 0.
  std::uint64_t position_of(std::size_t source, std::uint64_t number) const noexcept {
    std::uint64_t at = 0;
    for (std::uint64_t left = number % shares_[source];; ++at)
      if (sources_[at] == source && left-- == 0) break;
    return number / shares_[source] * period() + at;
  }

  /// Returns whole numbers in the proportion of the weights. Takes the smallest sum that is exact to a millionth of a
  /// share. Without such a sum up to longest_period, takes longest_period and rounds.
  /// Throws setup_error if there is no weight, a weight is not above 0, or a share is below 1 / longest_period.
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

  /// Rounds the largest remainders up.
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
      std::int64_t share, lag;   // lag: positions due so far minus positions received, in 1/period
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
        const std::int64_t slack = whole * (scale - 1) - scale * c.lag;   // strides to the deadline * scale * share
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
  std::vector<std::uint16_t> sources_;   // one period
};

}}}  // namespace millrace::detail
