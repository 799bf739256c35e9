// Defines what metric_totals.hpp declares.
#pragma once

#include <millrace/train/metric_totals.hpp>

#include <millrace/base/numbers.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void metric_totals::add(double value, double value_weight) noexcept {
    const double product = value * value_weight;
    if (!detail::is_finite(value) || !detail::is_finite(value_weight) || !detail::is_finite(product)) {
      ++nonfinite;
      return;
    }
    sum += product;
    weight += value_weight;
  }

MILLRACE_INLINE void metric_totals::merge(const metric_totals& other) noexcept {
    sum += other.sum;
    weight += other.weight;
    count += other.count;
    correct_1 += other.correct_1;
    correct_k += other.correct_k;
    nonfinite += other.nonfinite;
    bad_labels += other.bad_labels;
  }

}}}  // namespace millrace::detail
