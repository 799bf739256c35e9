// Service times to draw from: those of a recorded run, or planted ones.
//
//   mr::replayed decode(window.parts[0].service_ns);          // as often short and long as they were
//   mr::replayed step = mr::replayed::around(25e6, 0.5);      // 25 ms, give or take half, all alike
//   double ns = decode.scaled(0.5).at(rng);                // half as long; random is a mr::rng
//
// A draw picks a bucket of the histogram by its count, and a value in it, all alike; the mean is exactly that of what
// was recorded. Times in nanoseconds. Errors: none; of nothing recorded every draw is 0. Threads: immutable.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/measure/distribution.hpp>

#include <algorithm>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

class empirical_distribution {
 public:
  empirical_distribution() = default;
  explicit empirical_distribution(const distribution& recorded) {
    double middles = 0, before = 0;
    for (std::size_t i = 0; i < distribution::buckets; ++i) {
      if (recorded.bucket(i) == 0) continue;
      const auto count = static_cast<double>(recorded.bucket(i));
      const auto first = static_cast<double>(distribution::first_of(i));
      // Values are whole: the one of a bucket of width 1 is its first.
      const double width = static_cast<double>(distribution::first_of(i + 1) - 1) - first;
      pieces_.push_back({before += count, first, width});
      middles += count * (first + width / 2);
    }
    if (middles > 0) mean_ = middles / before;
    if (middles > 0) *this = with_mean(recorded.mean());
  }
  static empirical_distribution fixed(double ns) { return around(ns, 0); }
  /// From mean x (1 - spread) to mean x (1 + spread), all alike.
  static empirical_distribution around(double mean_ns, double spread) {
    empirical_distribution r;
    r.pieces_ = {{1, mean_ns * (1 - spread), 2 * mean_ns * spread}};
    r.mean_ = mean_ns;
    return r;
  }

  bool empty() const noexcept { return mean_ <= 0; }
  double mean() const noexcept { return mean_ * scale_; }

  empirical_distribution scaled(double factor) const {
    empirical_distribution r = *this;
    r.scale_ *= factor;
    return r;
  }
  /// The same shape around another mean; of nothing recorded, that mean itself.
  empirical_distribution with_mean(double ns) const { return empty() ? fixed(ns) : scaled(ns / mean()); }

  double at(rng& random) const noexcept {
    if (empty()) return 0;
    const double wanted = random.uniform() * pieces_.back().until;
    const auto piece = std::upper_bound(pieces_.begin(), pieces_.end() - 1, wanted,
                                        [](double w, const auto& p) { return w < p.until; });
    return scale_ * (piece->first + random.uniform() * piece->width);
  }

 private:
  struct piece {
    double until;   // counts up to and with this one
    double first, width;
  };
  std::vector<piece> pieces_;
  double mean_ = 0, scale_ = 1;
};

}}  // namespace millrace
