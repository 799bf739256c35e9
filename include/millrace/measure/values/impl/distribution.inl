// Definitions for distribution.hpp.
#pragma once

#include <millrace/measure/values/distribution.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE std::uint64_t distribution::count() const noexcept {
  std::uint64_t all = 0;
  for (const std::uint64_t c : counts_) all += c;
  return all;
}

MILLRACE_INLINE double distribution::mean() const noexcept {
  const std::uint64_t all = count();
  return all > 0 ? static_cast<double>(sum_) / static_cast<double>(all) : 0;
}

MILLRACE_INLINE double distribution::quantile(double share) const noexcept {
  const std::uint64_t all = count();
  if (all == 0) return 0;
  const double exact_rank = std::clamp(share, 0.0, 1.0) * static_cast<double>(all);
  auto rank = static_cast<std::uint64_t>(exact_rank);
  if (static_cast<double>(rank) < exact_rank) ++rank;
  rank = std::clamp<std::uint64_t>(rank, 1, all);
  std::size_t i = 0;
  for (std::uint64_t passed = counts_[0]; passed < rank; passed += counts_[i]) ++i;
  return middle_of(i);
}

MILLRACE_INLINE distribution& distribution::operator+=(const distribution& other) noexcept {
  for (std::size_t i = 0; i < buckets; ++i) counts_[i] += other.counts_[i];
  sum_ += other.sum_;
  return *this;
}

MILLRACE_INLINE distribution& distribution::operator-=(const distribution& earlier) noexcept {
  for (std::size_t i = 0; i < buckets; ++i) counts_[i] -= std::min(counts_[i], earlier.counts_[i]);
  sum_ -= std::min(sum_, earlier.sum_);
  return *this;
}

}}  // namespace millrace
