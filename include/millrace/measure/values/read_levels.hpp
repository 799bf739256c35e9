// Estimates how much faster storage is with more concurrent reads, from measurements at each number of outstanding
// reads.
//
//   levels.add(3, {.ns = spent_ns});                                 // exactly 3 reads were outstanding for this time
//   levels.add(2, {.reads = 1, .read_ns = read_ns, .bytes = size});  // a read ended; on average 2 were outstanding
//   levels.busy_ns();                                                // time with at least one outstanding read
//   std::optional<double> share = levels.contention();   // 0: speed is proportional to the reads; 1: constant
//
// In the model, k outstanding reads deliver k x b / (1 + q (k - 1)) bytes per second. Here b is the speed of a single
// read, and q is the share of a read that cannot run concurrently with other reads. contention() estimates q.
// Errors: none. With too few reads, contention() returns an empty optional. Threads: not synchronized.
// Source: the universal scalability law (Gunther, Guerrilla Capacity Planning, 2007) without the coherency term. The
// remaining formula is Amdahl's law.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI {

/// Counts time, reads and bytes by the number of outstanding reads.
class read_levels {
 public:
  /// The last level, which also counts all larger numbers of outstanding reads.
  static constexpr std::size_t max_level = 16;

  struct level {
    std::uint64_t ns = 0;        ///< time with exactly this number of outstanding reads
    std::uint64_t reads = 0;     ///< reads during which this number was outstanding on average (rounded)
    std::uint64_t read_ns = 0;   ///< total time of these reads
    std::uint64_t bytes = 0;     ///< bytes of these reads

    friend bool operator==(const level&, const level&) = default;
  };

  /// Adds time and reads to the level of this number of outstanding reads. at() returns the sums of a level.
  void add(std::size_t outstanding, const level& more) noexcept;
  const level& at(std::size_t outstanding) const noexcept { return levels_[std::min(outstanding, max_level)]; }

  /// Returns the time with at least one outstanding read. bytes() returns the bytes of all reads.
  std::uint64_t busy_ns() const noexcept;
  std::uint64_t bytes() const noexcept;
  /// Returns the mean number of outstanding reads, over the time with at least one.
  double mean_outstanding() const noexcept;

  /// Returns q of the formula above, 0..1. The result is empty if too few levels have enough reads. The value may be
  /// too low: if storage processes reads one after the other, the value is about 1/2 instead of 1.
  std::optional<double> contention() const noexcept;

  /// Returns the speed with this number of outstanding reads, relative to the speed of a single read.
  static double speed(double outstanding, double contention) noexcept;
  /// Returns the mean of speed() over the recorded levels, weighted by time.
  double mean_speed(double contention) const noexcept;

  /// Subtracts `earlier`, an earlier snapshot of the same run. The reads since that snapshot remain.
  read_levels& operator-=(const read_levels& earlier) noexcept;
  friend bool operator==(const read_levels&, const read_levels&) = default;

 private:
  std::array<level, max_level + 1> levels_{};
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/measure/values/impl/read_levels.inl>
#endif
