// Definitions for read_levels.hpp.
#pragma once

#include <millrace/measure/values/read_levels.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE void read_levels::add(std::size_t outstanding, const level& more) noexcept {
  level& l = levels_[std::min(outstanding, max_level)];
  l.ns += more.ns;
  l.reads += more.reads;
  l.read_ns += more.read_ns;
  l.bytes += more.bytes;
}

MILLRACE_INLINE std::uint64_t read_levels::busy_ns() const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t k = 1; k <= max_level; ++k) sum += levels_[k].ns;
  return sum;
}

MILLRACE_INLINE std::uint64_t read_levels::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& l : levels_) sum += l.bytes;
  return sum;
}

MILLRACE_INLINE double read_levels::mean_outstanding() const noexcept {
  double sum = 0;
  for (std::size_t k = 1; k <= max_level; ++k) sum += static_cast<double>(k) * static_cast<double>(levels_[k].ns);
  const auto busy = static_cast<double>(busy_ns());
  return busy > 0 ? sum / busy : 0;
}

MILLRACE_INLINE std::optional<double> read_levels::contention() const noexcept {
  std::uint64_t all = 0;
  for (const auto& l : levels_) all += l.reads;
  double weight = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
  std::size_t levels_used = 0;
  for (std::size_t k = 1; k < max_level; ++k) {
    const level& l = levels_[k];
    if (l.reads < 30 || l.reads * 50 < all || l.read_ns == 0) continue;
    const auto x = static_cast<double>(k - 1), w = static_cast<double>(l.reads);
    const double y = static_cast<double>(l.read_ns) / w;
    weight += w;
    sum_x += w * x;
    sum_y += w * y;
    sum_xx += w * x * x;
    sum_xy += w * x * y;
    ++levels_used;
  }
  if (levels_used < 2) return {};
  const double slope = (weight * sum_xy - sum_x * sum_y) / (weight * sum_xx - sum_x * sum_x);
  const double alone = (sum_y - slope * sum_x) / weight;
  return alone > 0 ? std::clamp(slope / alone, 0.0, 1.0) : 1.0;
}

MILLRACE_INLINE double read_levels::speed(double outstanding, double contention) noexcept {
  return outstanding / (1 + contention * (std::max(outstanding, 1.0) - 1));
}

MILLRACE_INLINE double read_levels::mean_speed(double contention) const noexcept {
  double sum = 0;
  for (std::size_t k = 1; k <= max_level; ++k)
    sum += static_cast<double>(levels_[k].ns) * speed(static_cast<double>(k), contention);
  const auto busy = static_cast<double>(busy_ns());
  return busy > 0 ? sum / busy : 0;
}

MILLRACE_INLINE read_levels& read_levels::operator-=(const read_levels& earlier) noexcept {
  for (std::size_t k = 0; k <= max_level; ++k) {
    levels_[k].ns -= std::min(levels_[k].ns, earlier.levels_[k].ns);
    levels_[k].reads -= std::min(levels_[k].reads, earlier.levels_[k].reads);
    levels_[k].read_ns -= std::min(levels_[k].read_ns, earlier.levels_[k].read_ns);
    levels_[k].bytes -= std::min(levels_[k].bytes, earlier.levels_[k].bytes);
  }
  return *this;
}

}}   // namespace millrace
