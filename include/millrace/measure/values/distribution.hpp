// A distribution of values: a snapshot of a histogram. Reports compute the quantiles of a distribution, and the
// difference of two distributions.
//
//   const mr::distribution before = run.statistics().wait_ns;        // time of each call of next()
//   train_one_epoch(run);
//   mr::distribution window = run.statistics().wait_ns - before;
//   window.count();   window.mean();                 // exact
//   window.quantile(0.99);                           // within 1/32 (3.2 %) of the exact value
//   window += other;                                 // as if all values had been recorded in one histogram
//
// Values are integers, usually nanoseconds. Each value below 32 has its own bucket. From 32 up, each range from one
// power of two to the next is divided into 16 equal buckets. A quantile is the middle of its bucket. All values from
// 2^42 up (73 minutes in nanoseconds) are in the last bucket. The object has 5 KiB. Errors: none. Threads: not
// synchronized.
// Source: the log-linear buckets of HdrHistogram (Gil Tene), with 4 bits of precision.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// Counts values by size, in 624 buckets.
class distribution {
 public:
  static constexpr std::size_t buckets = 624;
  static constexpr double quantile_error = 1.0 / 32;   ///< maximum relative error of a quantile
  static constexpr std::uint64_t largest = (std::uint64_t{1} << 42) - 1;

  /// Returns the bucket of a value.
  static constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
    value = std::min(value, largest);
    const auto width = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = width > 5 ? width - 5 : 0;
    return (std::size_t{shift} << 4) + static_cast<std::size_t>(value >> shift);
  }
  /// Returns the smallest value of a bucket. first_of(buckets) is the end of the last bucket.
  static constexpr std::uint64_t first_of(std::size_t bucket) noexcept {
    if (bucket < 32) return bucket;
    return (std::uint64_t{16} + (bucket & 15)) << ((bucket >> 4) - 1);
  }
  /// Returns the middle of a bucket, which represents all of its values.
  static constexpr double middle_of(std::size_t bucket) noexcept {
    return 0.5 * static_cast<double>(first_of(bucket) + first_of(bucket + 1) - 1);
  }

  /// Counts a value `times` times.
  void add(std::uint64_t value, std::uint64_t times = 1) noexcept {
    counts_[bucket_of(value)] += times;
    sum_ += value * times;
  }
  /// Sets the count of one bucket. set_sum() sets the sum of all values.
  void set_bucket(std::size_t bucket, std::uint64_t times) noexcept { counts_[bucket] = times; }
  void set_sum(std::uint64_t sum) noexcept { sum_ = sum; }

  /// Returns the count of one bucket. sum(), count() and mean() refer to all values. Without values, the mean is 0.
  std::uint64_t bucket(std::size_t index) const noexcept { return counts_[index]; }
  std::uint64_t sum() const noexcept { return sum_; }
  std::uint64_t count() const noexcept {
    std::uint64_t all = 0;
    for (const std::uint64_t c : counts_) all += c;
    return all;
  }
  double mean() const noexcept {
    const std::uint64_t all = count();
    return all > 0 ? static_cast<double>(sum_) / static_cast<double>(all) : 0;
  }

  /// Returns the value that a fraction `share` (0..1) of all values does not exceed. Returns 0 without values.
  double quantile(double share) const noexcept {
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

  /// Adds the values of another distribution.
  distribution& operator+=(const distribution& other) noexcept {
    for (std::size_t i = 0; i < buckets; ++i) counts_[i] += other.counts_[i];
    sum_ += other.sum_;
    return *this;
  }
  /// Subtracts `earlier`, an earlier snapshot of the same histogram. The values recorded since that snapshot remain.
  distribution& operator-=(const distribution& earlier) noexcept {
    for (std::size_t i = 0; i < buckets; ++i) counts_[i] -= std::min(counts_[i], earlier.counts_[i]);
    sum_ -= std::min(sum_, earlier.sum_);
    return *this;
  }
  friend distribution operator+(distribution a, const distribution& b) noexcept { return a += b; }
  friend distribution operator-(distribution later, const distribution& earlier) noexcept { return later -= earlier; }
  friend bool operator==(const distribution&, const distribution&) = default;

 private:
  std::array<std::uint64_t, buckets> counts_{};
  std::uint64_t sum_ = 0;
};

}}   // namespace millrace
