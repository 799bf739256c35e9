// A distribution from which the simulation draws service times. The times were recorded in a run, or are specified.
//
//   mr::detail::empirical_distribution decode(window.stages[0].service_ns);  // draws times as often as recorded
//   auto step = mr::detail::empirical_distribution::around(25e6, 0.5);               // 25 ms +- 50 %, uniform
//   double ns = decode.scaled(0.5).at(random);                               // half as long; random is an mr::rng
//
// Each draw selects a bucket of the histogram with a probability proportional to its count, and then a uniform value in
// the bucket. The mean of the distribution is exactly the mean of the recorded times. Unit: nanoseconds.
// Errors: none; if no time was recorded, each draw returns 0. Threads: objects are immutable; any thread may use them.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/measure/values/distribution.hpp>

#include <algorithm>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A distribution of service times, in nanoseconds.
class empirical_distribution {
 public:
  empirical_distribution() = default;
  /// Creates a distribution with the shape and the mean of a recorded histogram.
  explicit empirical_distribution(const distribution& recorded) {
    double middles = 0, before = 0;
    for (std::size_t i = 0; i < distribution::buckets; ++i) {
      if (recorded.bucket(i) == 0) continue;
      const auto count = static_cast<double>(recorded.bucket(i));
      const auto first = static_cast<double>(distribution::first_of(i));
      // Values are integers. Therefore a bucket of width 1 has only its first value.
      const double width = static_cast<double>(distribution::first_of(i + 1) - 1) - first;
      pieces_.push_back({before += count, first, width});
      middles += count * (first + width / 2);
    }
    if (middles > 0) mean_ = middles / before;
    if (middles > 0) *this = with_mean(recorded.mean());
  }
  /// Returns a distribution whose draws all return `ns`.
  static empirical_distribution fixed(double ns) { return around(ns, 0); }
  /// Returns a uniform distribution from mean x (1 - spread) to mean x (1 + spread).
  static empirical_distribution around(double mean_ns, double spread) {
    empirical_distribution r;
    r.pieces_ = {{1, mean_ns * (1 - spread), 2 * mean_ns * spread}};
    r.mean_ = mean_ns;
    return r;
  }

  /// Returns true if no time was recorded.
  bool empty() const noexcept { return mean_ <= 0; }
  /// Returns the mean, in nanoseconds.
  double mean() const noexcept { return mean_ * scale_; }

  /// Returns the distribution with each value multiplied by `factor`.
  empirical_distribution scaled(double factor) const {
    empirical_distribution r = *this;
    r.scale_ *= factor;
    return r;
  }
  /// Returns a distribution of the same shape with the mean `ns`; if no time was recorded, fixed(ns).
  empirical_distribution with_mean(double ns) const { return empty() ? fixed(ns) : scaled(ns / mean()); }

  /// Draws one value, in nanoseconds.
  double at(rng& random) const noexcept {
    if (empty()) return 0;
    const double position = random.uniform() * pieces_.back().until;
    const auto match = std::upper_bound(pieces_.begin(), pieces_.end() - 1, position,
                                        [](double w, const auto& p) { return w < p.until; });
    return scale_ * (match->first + random.uniform() * match->width);
  }

 private:
  struct piece {
    double until;   // sum of the counts up to and including this piece
    double first, width;
  };
  std::vector<piece> pieces_;
  double mean_ = 0, scale_ = 1;
};

}}}  // namespace millrace::detail
