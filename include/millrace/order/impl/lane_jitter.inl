// Definitions for lane_jitter.hpp.
#pragma once

#include <millrace/order/lane_jitter.hpp>

#include <millrace/base/random.hpp>

#include <cstddef>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::uint64_t lane_jitter::key(std::uint64_t index) const noexcept {
  const auto& o = options_;
  rng random({.seed = o.seed, .epoch = o.pass, .sample = combine_keys(o.lane, index), .stage = jitter_stream});
  return (index << 16) + random.below(o.window);
}

MILLRACE_INLINE std::uint64_t lane_jitter::at(std::uint64_t ordinal) const {
  if (!moves()) return ordinal;
  std::vector<entry> around;
  static_cast<void>(gather(ordinal, around));
  return around.front().index;
}

MILLRACE_INLINE std::uint64_t lane_jitter::gather(std::uint64_t ordinal, std::vector<entry>& around) const {
  const auto& o = options_;
  const std::uint64_t at = ordinal << 16;
  const std::uint64_t begin = at < o.window ? 0 : ((at - o.window) >> 16) + 1;
  const std::uint64_t end = std::min(o.length, (at + o.window + one_place - 1) >> 16);
  around.clear();
  around.reserve(static_cast<std::size_t>(end - begin));
  for (std::uint64_t i = begin; i < end; ++i) around.push_back({key(i), i});
  // Samples before `begin` have already been delivered. The first `ordinal - begin` entries by key have been delivered
  // too.
  const auto here = around.begin() + static_cast<std::ptrdiff_t>(ordinal - begin);
  std::nth_element(around.begin(), here, around.end(),
                   [](const entry& a, const entry& b) { return sliding_jitter<entry>::sorts_after(b, a); });
  around.erase(around.begin(), here);
  return end;
}

MILLRACE_RARE lane_walk::lane_walk(const lane_jitter& order, std::uint64_t ordinal) : order_(order), ordinal_(ordinal) {
  if (!order_.moves() || ordinal_ >= order_.settings().length) return;
  std::vector<lane_jitter::entry> around;
  const std::uint64_t arrived = order_.gather(ordinal_, around);
  waiting_.start(arrived, std::move(around));
}

}}}   // namespace millrace::detail
