// Definitions for pass_layout.hpp.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/order/pass_layout.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE pass_layout::pass_layout(options o)
    : shards_(std::move(o.shards)), dropped_(o.dropped), dropped_at_(o.dropped_at) {
  starts_.clear();
  starts_.reserve(shards_.size() + 1);
  std::uint64_t total = 0;
  for (const std::size_t shard : shards_) {
    starts_.push_back(total);
    total += o.counts[shard];
  }
  starts_.push_back(total);
}

MILLRACE_INLINE std::vector<located_sample> pass_layout::dropped() const {
  std::vector<located_sample> left_out;
  for (std::size_t k = 0; k < shards_.size(); ++k) {
    const std::uint64_t end = std::min(starts_[k + 1], dropped_at_ + dropped_);
    for (std::uint64_t ordinal = std::max(starts_[k], dropped_at_); ordinal < end; ++ordinal)
      left_out.push_back({shards_[k], ordinal - starts_[k]});
  }
  return left_out;
}

MILLRACE_RARE pass_permutation::pass_permutation(const options& o) {
  const auto shuffle = [&o](auto& table) {
    table.resize(static_cast<std::size_t>(o.length));
    std::iota(table.begin(), table.end(), 0);
    rng random({.seed = o.seed, .epoch = o.pass, .sample = permutation_stream, .stage = permutation_stream});
    for (std::uint64_t i = o.length; i > 1; --i) std::swap(table[i - 1], table[random.below(i)]);
  };
  if (o.length > std::uint64_t{1} << 32) shuffle(wide_);
  else shuffle(narrow_);
}

}}}   // namespace millrace::detail
