// Service times to draw from: those of a recorded run, or chosen ones.
//
//   mr::detail::empirical_distribution decode(window.stages[0].service_ns);  // as often short and long as recorded
//   auto step = mr::detail::empirical_distribution::around(25e6, 0.5);               // 25 ms +- 50 %, uniform
//   double ns = decode.scaled(0.5).at(random);                               // half as long; random is an mr::rng
//
// Each draw picks a bucket of the histogram by its count, and a uniform value in it. The mean is exactly that of the
// recorded times. Unit: nanoseconds.
// Errors: none; if nothing was recorded each draw is 0. Threads: immutable.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/measure/values/distribution.hpp>

#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A distribution of service times, in nanoseconds.
class empirical_distribution {
 public:
  empirical_distribution() = default;
  /// Takes shape and mean from a recorded histogram.
  explicit empirical_distribution(const distribution& recorded);
  /// Returns a distribution of one value.
  static empirical_distribution fixed(double ns) { return around(ns, 0); }
  /// Returns a uniform distribution from mean x (1 - spread) to mean x (1 + spread).
  static empirical_distribution around(double mean_ns, double spread);

  /// Returns true if nothing was recorded.
  bool empty() const noexcept { return mean_ <= 0; }
  /// Returns the mean, in nanoseconds.
  double mean() const noexcept { return mean_ * scale_; }

  /// Returns the distribution with each value times `factor`.
  empirical_distribution scaled(double factor) const;
  /// Returns the same shape with another mean; if nothing was recorded, that mean as the one value.
  empirical_distribution with_mean(double ns) const { return empty() ? fixed(ns) : scaled(ns / mean()); }

  /// Draws one value, in nanoseconds.
  double at(rng& random) const noexcept;

 private:
  struct piece {
    double until;   // sum of the counts up to and including this piece
    double first, width;
  };
  std::vector<piece> pieces_;
  double mean_ = 0, scale_ = 1;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/report/simulate/impl/empirical_distribution.inl>
#endif
