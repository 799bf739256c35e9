// source_weight: the weight of a source in a mix, as a number or as a function of the position.
//
//   mr::weighted{web, 0.7};
//   mr::weighted{web, mr::source_weight::steps({{0, 0.9}, {1'000'000, 0.5}})};     // 0.5 from position 1,000,000 on
//   mr::weighted{web, mr::source_weight::linear({{0, 0.9}, {1'000'000, 0.1}})};    // 0.5 at position 500,000
//   mr::weighted{web, [](std::uint64_t position) { return std::exp(-1e-6 * double(position)); }};
//
// Units: a position counts the samples of all ranks together from the start of the run. At the start of a step, the
// position is step * batch size * ranks. A weight is relative to the weights of the other sources at the same position.
// A constant weight must be above 0; other weights may be 0. Before the first point and after the last point, the
// weight is that of the nearest point. If a mix contains another mix, the weights of the inner mix depend on the
// position in the run, too, not on the number of samples from the inner mix.
// Errors: setup_error if the list of points is empty or not in ascending order, or if a weight is negative or not
// finite. Exceptions of a function end the run.
// Threads: immutable. A function must depend only on the position. Several threads may call it at the same time.
// Cost: order/mix_schedule.hpp describes how often a weight is evaluated.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/half.hpp>
#include <millrace/base/random.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

/// The behavior of a mix when one of its sources is exhausted: end the epoch, repeat the source, or reweight the
/// others.
enum class exhausted : std::uint8_t { stop, repeat, reweight };

class source_weight;

namespace detail {

/// Combines the weights of a mix within a mix into one weight for the source with the index `inner`. At each position,
/// this weight is `outer` times the source's share of the inner mix. `outer` is the weight of the inner mix in the
/// outer mix.
source_weight weight_within(const source_weight& outer, const std::vector<source_weight>& of_inner, std::size_t inner);

}   // namespace detail

/// The weight of a source in a mix: constant, or a function of the position.
class source_weight {
 public:
  /// A weight at a position.
  struct point {
    std::uint64_t position = 0;   ///< in samples of the run, over all ranks
    double weight = 0;            ///< at least 0

    friend bool operator==(const point&, const point&) = default;
  };

  /// Creates a constant weight, which must be above 0.
  source_weight(double weight = 1) : points_{{0, weight}} {}

  /// Creates a weight that `function` computes from the position. The function is called at the start of each block of
  /// positions (order/mix_schedule.hpp).
  template <class Function>
    requires std::is_invocable_r_v<double, const Function&, std::uint64_t>
  source_weight(Function function)
      : function_(std::make_shared<const weight_of<Function>>(std::move(function))), of_user_(true) {}

  /// Reports an argument that is neither a number nor a function.
  template <class Other>
    requires(!std::is_arithmetic_v<Other> && !std::is_same_v<Other, source_weight> &&
             !std::is_invocable_r_v<double, const Other&, std::uint64_t>)
  // clang-format off
  __attribute__((unavailable("millrace: the weight of a source is neither a number nor a function "
                             "double(std::uint64_t position).")))
  source_weight(const Other&) {}
  // clang-format on

  /// Creates a weight that changes at each point and is constant between points.
  static source_weight steps(std::vector<point> points) { return source_weight(std::move(points), false); }
  /// Creates a weight that changes linearly from each point to the next.
  static source_weight linear(std::vector<point> points) { return source_weight(std::move(points), true); }

  /// Returns whether the weight is the same at all positions.
  bool is_constant() const noexcept { return !function_ && points_.size() == 1; }
  /// Returns the points of steps() or linear(), one point for a constant weight, and no points for a function.
  const std::vector<point>& points() const noexcept { return points_; }

  /// Returns whether the weight depends on a function of the user.
  bool is_function() const noexcept { return of_user_; }

  /// Returns the weight at a position.
  double at(std::uint64_t position) const {
    if (function_) return function_->at(position);
    const auto next = std::upper_bound(points_.begin(), points_.end(), position,
                                       [](std::uint64_t at, const point& p) { return at < p.position; });
    if (next == points_.begin()) return next->weight;
    const point& before = *(next - 1);
    if (!linear_ || next == points_.end()) return before.weight;
    const double part = static_cast<double>(position - before.position) /
                        static_cast<double>(next->position - before.position);
    return before.weight + part * (next->weight - before.weight);
  }

  /// Returns the mean weight of the positions [begin, end). A point of the weight may be at `begin`, but not at a later
  /// position of the interval. If the weight is linear(), or combines weights of which one is linear()
  /// (weight_within()), the result is the mean of the values at `begin` and at `end` - 1. For any other weight, the
  /// result is at(begin).
  double mean(std::uint64_t begin, std::uint64_t end) const {
    return linear_ ? (at(begin) + at(end - 1)) / 2 : at(begin);
  }

  /// Returns a hash of the weights. A function is evaluated at some positions.
  std::uint64_t fingerprint() const {
    std::uint64_t all = detail::combine_keys(function_ ? 2 : linear_ ? 1 : 0, points_.size());
    const auto add = [&](std::uint64_t position, double weight) {
      all = detail::combine_keys(detail::combine_keys(all, position), std::bit_cast<std::uint64_t>(weight));
    };
    for (const point& p : points_) add(p.position, p.weight);
    if (function_) {
      for (std::uint64_t i = 0; i < 4; ++i) add(i, at(i));
      for (std::uint64_t octave = 4; octave < std::uint64_t{1} << 48; octave *= 2)
        for (std::uint64_t quarter = 0; quarter < 4; ++quarter) {
          const std::uint64_t position = octave + octave / 4 * quarter;
          add(position, at(position));
        }
    }
    return all;
  }

 private:
  friend source_weight detail::weight_within(const source_weight&, const std::vector<source_weight>&, std::size_t);

  struct any_function {
    virtual ~any_function() = default;
    virtual double at(std::uint64_t position) const = 0;
  };
  template <class Function>
  struct weight_of final : any_function {
    explicit weight_of(Function f) : function(std::move(f)) {}
    double at(std::uint64_t position) const override { return function(position); }
    Function function;
  };

  source_weight(std::vector<point> points, bool linear) : points_(std::move(points)), linear_(linear) {
    if (points_.empty())
      throw setup_error("the weight of a source is an empty list, expected at least one position with a weight",
                        "Pass at least one position and its weight");
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const auto& [position, weight] = points_[i];
      if (!detail::is_finite(weight) || weight < 0)
        throw setup_error("the weight of a source is invalid at position " + std::to_string(position) + ": got " +
                              std::to_string(weight) + ", expected a finite number of at least 0",
                          "Set a weight of at least 0");
      if (i > 0 && position <= points_[i - 1].position)
        throw setup_error("the points of a source's weight are not in ascending order: got position " +
                              std::to_string(position) + " after " + std::to_string(points_[i - 1].position),
                          "Sort the points by position, and pass each position once");
    }
    const double first = points_.front().weight;
    if (std::all_of(points_.begin(), points_.end(), [=](const point& p) { return p.weight == first; })) {
      points_ = {{0, first}};
      linear_ = false;
    }
  }

  std::vector<point> points_{};
  std::shared_ptr<const any_function> function_{};   // null if `points_` define the weight
  bool linear_ = false, of_user_ = false;
};

namespace detail {

inline source_weight weight_within(const source_weight& outer, const std::vector<source_weight>& of_inner,
                                   std::size_t inner) {
  const auto at = [outer, of_inner, inner](std::uint64_t position) {
    const double weight = outer.at(position), own = of_inner[inner].at(position);
    if (weight == 0 || own == 0) return 0.0;   // avoids 0 / 0 if all weights are 0
    double all = 0;
    for (const source_weight& one : of_inner) all += one.at(position);
    return weight * (own / all);
  };
  const auto is_constant = [](const source_weight& one) { return one.is_constant(); };
  if (outer.is_constant() && std::all_of(of_inner.begin(), of_inner.end(), is_constant)) return at(0);
  source_weight product(at);
  product.of_user_ = false;
  std::vector<std::uint64_t> positions;
  const auto add = [&](const source_weight& one) {
    for (const source_weight::point& p : one.points()) positions.push_back(p.position);
    product.linear_ = product.linear_ || one.linear_;
    product.of_user_ = product.of_user_ || one.of_user_;
  };
  add(outer);
  for (const source_weight& one : of_inner) add(one);
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  for (const std::uint64_t position : positions) product.points_.push_back({position, at(position)});
  return product;
}

}   // namespace detail

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>
