// Assigns each position to one of several sources. Every interval of positions contains the sources in proportion to
// their shares.
//
//   mr::detail::mix_pattern pattern({7, 3});           // source 0 gets seven of ten positions, source 1 gets three
//   pattern.source_at(1'000'003);   // the source of position 1,000,003: a pure function of the position
//   pattern.counts_before(1'000'003);                  // for each source, the number of its positions below 1,000,003
//   pattern.positions_of({7, 300'000});   // positions of sample 7 of source 0, and of sample 300,000 of source 1
//   mr::detail::mix_pattern::shares_of({0.7, 0.3});    // {7, 3}
//
// Shares are integers. The period of the pattern is the sum of the shares. The pattern is the same on every machine.
// Among the first n positions, a source has n * share / sum positions, with an error below 1. Among any n consecutive
// positions, the error is at most 1 with two sources, and below 2 with more sources.
// Algorithm: R. Tijdeman, The chairman assignment problem, Discrete Mathematics 32 (1980).
// Cost: 2 bytes for each position of the period. source_at() reads one element of a table. counts(), counts_before()
// and positions_of() scan one period.
// Errors: shares_of() throws setup_error for invalid weights. Threads: immutable.
#pragma once

#include <millrace/flow/source_weight.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Describes the mix of sources: their weights, and the behavior when a source runs out.
//
//   mr::detail::mix_rule rule{.sources = {{.weight = 0.7, .name = "photos"}, {.weight = 0.3}},
//                             .on_exhausted = mr::exhausted::repeat};
//
// order/mix_plan.hpp describes each value of `exhausted`.

/// One source of a mix: its weight, the seed and window of its shuffle, and its sample counts.
struct mix_source_spec {
  source_weight weight = 1;
  std::uint64_t seed = 0;
  std::vector<std::uint64_t> counts{};   ///< number of samples in each shard; empty if unknown
  std::size_t window = 0;                ///< shuffle window in samples; 0 without a shuffle
  std::string name{};                    ///< name in messages and reports; if empty, they contain the source's number
};
/// The sources of a mix, and the behavior when a source runs out.
struct mix_rule {
  std::vector<mix_source_spec> sources{};
  exhausted on_exhausted = exhausted::stop;
};

/// A periodic assignment of positions to sources.
class mix_pattern {
 public:
  /// Maximum sum of the shares that shares_of() returns.
  static constexpr std::uint64_t longest_period = 65'536;

  /// A source with the share 0 never occurs; at least one share must be above 0. The sum of the shares, divided by
  /// their greatest common divisor, must be at most 4 * longest_period.
  explicit mix_pattern(std::vector<std::uint64_t> shares);

  /// Returns the shares, divided by their greatest common divisor.
  const std::vector<std::uint64_t>& shares() const noexcept { return shares_; }
  /// Returns the number of positions after which the pattern repeats.
  std::uint64_t period() const noexcept { return sources_.size(); }

  /// Returns the source of a position.
  std::size_t source_at(std::uint64_t position) const noexcept { return sources_[position % sources_.size()]; }

  /// Returns, for each source, the number of its positions below `position`.
  std::vector<std::uint64_t> counts_before(std::uint64_t position) const { return counts(0, position, 1); }

  /// Returns, for each source, the number of its positions among begin, begin + stride, ... below `end`.
  std::vector<std::uint64_t> counts(std::uint64_t begin, std::uint64_t end, std::uint64_t stride) const;

  /// Returns, for each source, the position of its sample with the number `numbers[source]`. Scans one period.
  std::vector<std::uint64_t> positions_of(const std::vector<std::uint64_t>& numbers) const;

  /// Scales the weights to the smallest sum at which each is within one millionth of an integer. Returns these integers
  /// as shares. If no sum up to longest_period has this property, rounds the shares so that their sum is
  /// longest_period. Throws setup_error if `weights` is empty, if a weight is invalid (check_weight()), or if a weight
  /// is below 1 / longest_period of their sum.
  static std::vector<std::uint64_t> shares_of(const std::vector<double>& weights);
  /// Throws setup_error unless `weight` is finite and above 0.
  static void check_weight(double weight);
  /// Returns the shares of sources with constant weights. Throws the same errors as the other shares_of().
  static std::vector<std::uint64_t> shares_of(const std::vector<mix_source_spec>& sources);

 private:
  static std::vector<std::uint64_t> exact_shares(const std::vector<double>& weights, double all, std::uint64_t sum);

  /// Returns shares whose sum is longest_period. Rounds up the shares with the largest remainders, and rounds down the
  /// others.
  static std::vector<std::uint64_t> rounded_shares(const std::vector<double>& weights, double all);
  void assign_sources(std::uint64_t period);

  std::vector<std::uint64_t> shares_;
  std::vector<std::uint16_t> sources_;   // one period
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/order/impl/mix_pattern.inl>
#endif
