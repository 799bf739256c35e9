// Measures a shuffle against a slow and obvious one: the shards are permuted, and all
// samples of the pass are sorted by one key each.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace shuffle_measures {

/// The order of a pass: for each position, the number of its sample in the files.
using order = std::vector<std::uint64_t>;

/// A data set of shards whose sizes differ by at most one.
struct data_set {
  std::uint64_t samples = 0, shards = 1;

  std::vector<std::uint64_t> counts() const {
    std::vector<std::uint64_t> all(shards, samples / shards);
    for (std::uint64_t i = 0; i < samples % shards; ++i) ++all[i];
    return all;
  }
  std::vector<std::uint64_t> starts() const {
    std::vector<std::uint64_t> all{0};
    for (const std::uint64_t count : counts()) all.push_back(all.back() + count);
    return all;
  }
};

/// A pass of a sliding window, or of a complete shuffle if the window covers the data set.
inline order slow_pass(const data_set& data, std::uint64_t window, std::mt19937_64& random) {
  std::vector<order> shards(data.shards);
  const std::vector<std::uint64_t> starts = data.starts();
  for (std::uint64_t s = 0; s < data.shards; ++s)
    for (std::uint64_t i = starts[s]; i < starts[s + 1]; ++i) shards[s].push_back(i);
  std::shuffle(shards.begin(), shards.end(), random);
  order sequence;
  for (const order& shard : shards) sequence.insert(sequence.end(), shard.begin(), shard.end());
  if (window >= data.samples) {
    std::shuffle(sequence.begin(), sequence.end(), random);
    return sequence;
  }
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<std::pair<double, std::uint64_t>> keys;
  for (std::uint64_t i = 0; i < data.samples; ++i)
    keys.emplace_back(static_cast<double>(i) + uniform(random) * static_cast<double>(window), sequence[i]);
  std::sort(keys.begin(), keys.end());
  for (std::uint64_t i = 0; i < data.samples; ++i) sequence[i] = keys[i].second;
  return sequence;
}

/// The measures of two passes of one run.
struct measures {
  static constexpr std::size_t count = 5;
  static constexpr const char* names[count] = {"correlation with the files", "squared correlation", "distance moved",
                                               "same place in two epochs", "distance of neighbors"};
  double values[count] = {};
};

inline measures measure(const order& first, const order& second) {
  const auto n = static_cast<double>(first.size());
  const double middle = (n - 1) / 2;
  measures m;
  double products = 0, squares = 0;
  std::vector<double> at(first.size());
  for (std::size_t p = 0; p < first.size(); ++p) {
    const double file = static_cast<double>(first[p]), place = static_cast<double>(p);
    products += (file - middle) * (place - middle);
    squares += (place - middle) * (place - middle);
    m.values[2] += std::abs(file - place) / n;
    m.values[3] += (first[p] == second[p]) / n;
    at[first[p]] = place;
  }
  m.values[0] = products / squares;
  m.values[1] = m.values[0] * m.values[0];
  for (std::size_t i = 1; i < at.size(); ++i) m.values[4] += std::abs(at[i] - at[i - 1]) / n;
  return m;
}

/// Returns the samples of the largest data set of the matrix.
inline std::uint64_t largest_set() {
  const char* const largest = std::getenv("MILLRACE_SHUFFLES");
  return largest ? std::strtoull(largest, nullptr, 10) : 333;
}
/// Returns the number of seeds for each configuration.
inline std::size_t seeds(std::size_t usual) { return std::getenv("MILLRACE_SHUFFLES") ? 200 : usual; }

/// Collects the deviations of means over all configurations.
class comparison {
 public:
  explicit comparison(std::string source) : source_(std::move(source)) {}

  /// `passes(seed)` returns two passes of the run with that seed.
  void add(const data_set& data, std::uint64_t window, std::size_t seeds,
           const std::function<std::pair<order, order>(std::uint64_t)>& passes) {
    double sums[2][measures::count] = {}, squares[2][measures::count] = {};
    std::mt19937_64 random(data.samples * 1'000'003 + data.shards * 1'009 + window);
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const auto [first, second] = passes(seed);
      REQUIRE(first.size() == data.samples);
      REQUIRE(second.size() == data.samples);
      const order slow = slow_pass(data, window, random), later = slow_pass(data, window, random);
      const measures m[2] = {measure(first, second), measure(slow, later)};
      for (int of = 0; of < 2; ++of)
        for (std::size_t i = 0; i < measures::count; ++i) {
          sums[of][i] += m[of].values[i];
          squares[of][i] += m[of].values[i] * m[of].values[i];
        }
    }
    const auto n = static_cast<double>(seeds);
    for (std::size_t i = 0; i < measures::count; ++i) {
      double mean[2], variance = 0;
      for (int of = 0; of < 2; ++of) {
        mean[of] = sums[of][i] / n;
        variance += std::max(0.0, squares[of][i] / n - mean[of] * mean[of]) / (n - 1);
      }
      const double off = std::abs(mean[0] - mean[1]);
      const double deviation = off < 1e-9 ? 0 : off / std::sqrt(variance + 1e-18);
      ++compared_;
      outside_ += deviation > 3.29;   // the interval of 99.9 %
      INFO(source_, ": ", data.samples, " samples in ", data.shards, " shards, window ", window, ", ",
           measures::names[i], ": got ", mean[0], ", expected ", mean[1]);
      CHECK(deviation < 4.9);   // probability 1e-6
      if (std::getenv("MILLRACE_SHUFFLES_TABLE"))
        MESSAGE(source_, " ", data.samples, " ", data.shards, " ", window, " ", measures::names[i], ": ", mean[0], " ",
                mean[1], " ", deviation);
    }
  }
  ~comparison() {
    // One in a thousand is expected to be outside of its interval.
    INFO(source_, ": ", outside_, " of ", compared_, " means are outside of the interval of 99.9 %");
    CHECK(outside_ <= 1 + compared_ / 200);
  }

 private:
  std::string source_;
  std::size_t compared_ = 0, outside_ = 0;
};

}  // namespace shuffle_measures
