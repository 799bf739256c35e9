// The sums of one metric since the last row of the log, on the host or in device memory.
//
//   mr::metric_totals t;
//   t.add(loss, batch_size);            // NaN and infinite values are counted and excluded from the sum
//   t.merge(others);
//   double mean = t.sum / t.weight;
//
// Sums are f64, counts are u64. Threads: not synchronized. CUDA kernels call the same functions.
#pragma once

#include <millrace/base/numbers.hpp>
#include <millrace/base/version.hpp>

#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// Weighted sum, counts and errors of one metric.
struct metric_totals {
  double sum = 0, weight = 0;   ///< sum of value x weight; sum of weights
  std::uint64_t count = 0;      ///< number of samples or units, or duration in nanoseconds
  std::uint64_t correct_1 = 0, correct_k = 0;
  std::uint64_t nonfinite = 0;    ///< values excluded from `sum`, or rows of logits with a NaN
  std::uint64_t bad_labels = 0;   ///< rows that a device omitted because their label is not a class

  /// Adds value * weight to `sum`, and the weight to `weight`. If the product or the weight is not finite, only
  /// increments `nonfinite`.
  MILLRACE_BOTH_SIDES void add(double value, double value_weight) noexcept {
    const double product = value * value_weight;
    if (!detail::is_finite(value) || !detail::is_finite(value_weight) || !detail::is_finite(product)) {
      ++nonfinite;
      return;
    }
    sum += product;
    weight += value_weight;
  }

  /// Adds all members of `other`.
  MILLRACE_BOTH_SIDES void merge(const metric_totals& other) noexcept {
    sum += other.sum;
    weight += other.weight;
    count += other.count;
    correct_1 += other.correct_1;
    correct_k += other.correct_k;
    nonfinite += other.nonfinite;
    bad_labels += other.bad_labels;
  }

  /// Returns true if nothing was added.
  bool empty() const noexcept { return !(weight > 0) && count == 0 && nonfinite == 0 && bad_labels == 0; }
};

}}   // namespace millrace
