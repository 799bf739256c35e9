// Defines what empirical_distribution.hpp declares.
#pragma once

#include <millrace/report/simulate/empirical_distribution.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE empirical_distribution::empirical_distribution(const distribution& recorded) {
  double middles = 0, before = 0;
  for (std::size_t i = 0; i < distribution::buckets; ++i) {
    if (recorded.bucket(i) == 0) continue;
    const auto count = static_cast<double>(recorded.bucket(i));
    const auto first = static_cast<double>(distribution::first_of(i));
    // Values are whole numbers: a bucket of width 1 holds only its first value.
    const double width = static_cast<double>(distribution::first_of(i + 1) - 1) - first;
    pieces_.push_back({before += count, first, width});
    middles += count * (first + width / 2);
  }
  if (middles > 0) mean_ = middles / before;
  if (middles > 0) *this = with_mean(recorded.mean());
}

MILLRACE_INLINE empirical_distribution empirical_distribution::around(double mean_ns, double spread) {
  empirical_distribution r;
  r.pieces_ = {{1, mean_ns * (1 - spread), 2 * mean_ns * spread}};
  r.mean_ = mean_ns;
  return r;
}

MILLRACE_INLINE empirical_distribution empirical_distribution::scaled(double factor) const {
  empirical_distribution r = *this;
  r.scale_ *= factor;
  return r;
}

MILLRACE_INLINE double empirical_distribution::at(rng& random) const noexcept {
  if (empty()) return 0;
  const double wanted = random.uniform() * pieces_.back().until;
  const auto drawn = std::upper_bound(pieces_.begin(), pieces_.end() - 1, wanted,
                                      [](double w, const auto& p) { return w < p.until; });
  return scale_ * (drawn->first + random.uniform() * drawn->width);
}

}}}  // namespace millrace::detail
