// The order of mixes, the slow way; the walks of ranks; random weights.
#pragma once

#include "../../thorough.hpp"

#include <millrace/order/mix_plan.hpp>

#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <set>

namespace mr = millrace;

namespace slow_mix {

using options = mr::detail::mix_plan_options;

/// A sample, by its number in the plan, and its source's pass.
struct named {
  mr::detail::located_sample sample{};
  std::uint64_t pass = 0;
  friend bool operator==(const named&, const named&) = default;
};
using order = std::vector<named>;

inline std::uint64_t samples_of(const mr::detail::mix_source_spec& s) {
  return std::accumulate(s.counts.begin(), s.counts.end(), std::uint64_t{0});
}

/// The n-th sample of a source in the complete run, by the plan of that source alone.
inline named alone(const options& o, std::size_t source, std::uint64_t number) {
  const mr::detail::mix_source_spec& s = o.sources[source];
  const mr::detail::exact_order plan({.seed = s.seed,
                            .counts = s.counts,
                            .shuffled = s.window > 0,
                            .window = s.window,
                            .lanes = o.lanes,
                            .epoch_batches = mr::detail::exact_order_options::endless});
  const mr::detail::ordered_sample position = plan.sample_at(0, number);
  std::uint64_t first_shard = 0;
  for (std::size_t i = 0; i < source; ++i) first_shard += o.sources[i].counts.size();
  return {{first_shard + position.sample.shard, position.sample.index}, position.pass};
}

/// The sources of the first positions of a mix whose weights change. In each block, one position at a time goes to the
/// source with the largest lag; the pattern of these numbers of samples then distributes the block.
inline std::vector<std::size_t> slow_sources(const std::vector<mr::detail::mix_source_spec>& sources,
                                             std::uint64_t length) {
  constexpr std::int64_t unit = std::int64_t{1} << 32;
  std::vector<std::size_t> all;
  std::vector<std::int64_t> lags(sources.size(), 0);
  std::uint64_t longest = 256;
  while (longest < 4 * sources.size()) longest *= 2;
  std::set<std::uint64_t> points;
  for (const auto& s : sources)
    for (const auto& p : s.weight.points()) points.insert(p.position);
  while (all.size() < length) {
    const std::uint64_t begin = all.size();
    std::uint64_t end = begin + 1, block = longest;
    const auto next = points.upper_bound(begin);
    if (next != points.begin() && next != points.end()) {
      block = 16;
      while (block < longest && block * 2 * 64 <= *next - *std::prev(next)) block *= 2;
    }
    while (end % block != 0 && !points.contains(end)) ++end;
    std::vector<double> weights;
    for (const auto& s : sources) {
      const bool is_function = s.weight.points().empty();
      weights.push_back((s.weight.at(begin) + s.weight.at(is_function ? begin : end - 1)) / 2);
    }
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::int64_t left = unit;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const auto share = static_cast<std::int64_t>(weights[i] / sum * static_cast<double>(unit));
      lags[i] += share * static_cast<std::int64_t>(end - begin);
      left -= share;
    }
    lags[static_cast<std::size_t>(std::max_element(weights.begin(), weights.end()) - weights.begin())] +=
        left * static_cast<std::int64_t>(end - begin);
    std::vector<std::uint64_t> quotas(sources.size(), 0);
    for (std::uint64_t p = begin; p < end; ++p) {
      const auto largest = static_cast<std::size_t>(std::max_element(lags.begin(), lags.end()) - lags.begin());
      ++quotas[largest];
      lags[largest] -= unit;
    }
    const mr::detail::mix_pattern pattern(quotas);
    for (std::uint64_t p = begin; p < end; ++p) all.push_back(pattern.source_at(p - begin));
  }
  return all;
}

/// A weight of each kind.
inline mr::source_weight random_weight(mr::rng& random) {
  std::vector<mr::source_weight::point> points;
  for (std::uint64_t at = random.below(50), n = 2 + random.below(4); n > 0; --n, at += 1 + random.below(700))
    points.push_back({at, random.chance(0.2) ? 0 : random.uniform()});
  points.back().weight = 0.1;
  switch (random.below(4)) {
    case 0: return 0.05 + random.uniform();
    case 1: return mr::source_weight::steps(points);
    case 2: return mr::source_weight::linear(points);
    default: return [base = random.uniform()](std::uint64_t p) { return base + static_cast<double>(p % 999) / 500; };
  }
}

inline mr::detail::mix_schedule schedule_of(const std::vector<mr::detail::mix_source_spec>& sources) {
  return {{sources, mr::exhausted::repeat}, {}};
}

inline bool changes(const options& o) {
  return mr::detail::mix_schedule::of({o.sources, o.on_exhausted}, {}) != nullptr;
}

/// The outputs of the cursors of `world_size` ranks, from `position` on, merged into one order.
inline order walked(const mr::detail::mix_plan& plan, std::uint64_t epoch, std::uint64_t position,
                    std::size_t world_size) {
  std::map<std::uint64_t, named> by_position;
  for (std::size_t rank = 0; rank < world_size; ++rank) {
    mr::detail::mix_cursor cursor(plan, {.world = {.rank = rank, .size = world_size},
                                 .epoch = epoch,
                                 .position = position});
    while (const auto s = cursor.next()) {
      REQUIRE(s->position % world_size == rank);
      REQUIRE(s->epoch == epoch);
      REQUIRE(by_position.emplace(s->position, named{s->sample, s->pass}).second);
    }
  }
  order out;
  for (const auto& [p, s] : by_position) {
    REQUIRE(p == position + out.size());
    out.push_back(s);
  }
  return out;
}

}  // namespace slow_mix
