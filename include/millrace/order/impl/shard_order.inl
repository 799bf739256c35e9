// Definitions for shard_order.hpp.
#pragma once

#include <millrace/order/shard_order.hpp>

#include <algorithm>
#include <numeric>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::uint64_t shard_order::first_needed_for(std::uint64_t ordinal) const noexcept {
  const std::uint64_t window = jitters() ? options_.window : 1;
  return ordinal < window ? 0 : ordinal - window + 1;
}

MILLRACE_RARE std::vector<std::size_t> shard_order::shards_of(std::uint64_t epoch) const {
  std::vector<std::size_t> order(options_.shards);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (options_.shuffled) {
    rng random({.seed = options_.seed, .epoch = epoch, .sample = shard_stream, .stage = 0});
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  }
  if (options_.lanes == 1) return order;
  std::size_t count = 0;
  for (std::size_t i = options_.lane; i < order.size(); i += options_.lanes) order[count++] = order[i];
  order.resize(count);
  return order;
}

MILLRACE_INLINE std::uint64_t shard_order::jitter_key(std::uint64_t epoch, std::uint64_t index) const noexcept {
  rng random({.seed = options_.seed, .epoch = epoch, .sample = key_of(index), .stage = jitter_stream});
  constexpr std::uint64_t widest = std::uint64_t{1} << 40;   // beyond it the keys overflow
  return (index << 16) + random.below(std::min<std::uint64_t>(options_.window, widest) << 16);
}

MILLRACE_INLINE std::uint64_t shard_order::permutation_key(std::uint64_t epoch, std::uint64_t index) const noexcept {
  return rng({.seed = options_.seed, .epoch = epoch, .sample = key_of(index), .stage = permutation_stream}).bits();
}

}}}   // namespace millrace::detail
