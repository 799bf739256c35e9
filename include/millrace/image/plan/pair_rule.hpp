// Draws the parameters that mix a pair of rows: the method (mixup or cutmix), the share, and the box of cutmix. The
// share is the weight of a row. The weight of its partner is 1 - share.
//
//   const mr::detail::pair_rule rule({.mixup_alpha = 0.8, .cutmix_alpha = 1.0, .switch_probability = 0.5});
//   const mr::detail::pair_mix how = rule.draw(random, {.width = 224, .height = 224});
//
// Order of the draws: whether to mix the pair, whether to use cutmix (only if both methods are enabled), and the share.
// For cutmix, the center of the box follows: first its column, then its row. With cutmix_minmax, the height, width, top
// and left of the box follow instead.
// - Mixup: the share is Beta(alpha, alpha), rounded to 32768ths.
// - Cutmix: each side of the box is sqrt(1 - share) of the image's side. The center is uniform in the image, and the
//   box is clipped to the image. torchvision and timm have the same rule.
// - Cutmix with cutmix_minmax follows timm: height and width are uniform between the two fractions of the image's side,
//   and the box is inside the image.
//
// In both variants of cutmix, pair_mix::lambda is the fraction of the image's area outside the box.
// Source: torchvision/transforms/v2/_augment.py, timm/data/mixup.py.
// Errors: setup_error for options out of range. Threads: any; do not share an rng between threads.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/fixed_point.hpp>
#include <millrace/image/plan/random_crop.hpp>
#include <millrace/item/column/row_mix.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Draws from the symmetric Beta distribution, Beta(alpha, alpha), with integers only. The same random numbers produce
// the same shares on every machine and compiler.
// Method: for alpha below 1, Joehnk's rule (Metrika 8, 1964), computed with logarithms. For alpha above 1, rejection
// sampling from uniform shares.
// Errors: setup_error if alpha is outside [1/1024, 1024].

/// A symmetric Beta distribution.
class beta_draw {
 public:
  static constexpr double least_alpha = 1.0 / 1024, largest_alpha = 1024;

  explicit constexpr beta_draw(double alpha) {
    if (!(alpha >= least_alpha && alpha <= largest_alpha))
      throw setup_error("the alpha of a Beta distribution is out of range: got " + std::to_string(alpha) +
                            ", expected 1/1024 to 1024",
                        "Use the alpha of your recipe, such as 0.8 for mixup and 1 for cutmix");
    alpha_ = to_fixed(alpha);
  }

  /// Returns a share with 32 fraction bits, in [0, 2^32].
  constexpr std::uint64_t operator()(rng& random) const noexcept {
    if (alpha_ == one) return random.below(one + 1);
    return alpha_ < one ? by_powers(random) : by_rejection(random);
  }

 private:
  static constexpr std::uint64_t one = std::uint64_t{1} << 32;

  /// Returns 2^-x, or 0 if that is below 2^-32.
  static constexpr std::uint64_t power(std::uint64_t x) noexcept {
    return x >= std::uint64_t{33} << 32 ? 0 : fixed_exp2(-static_cast<std::int64_t>(x));
  }
  /// Draws -log2(U) / alpha, where U is uniform between 0 and 1.
  constexpr std::uint64_t divided_exponential(rng& random) const noexcept {
    return static_cast<std::uint64_t>((unsigned_128{fixed_exponential(random)} << 32) / alpha_);
  }

  constexpr std::uint64_t by_powers(rng& random) const noexcept {
    for (;;) {
      const std::uint64_t x = divided_exponential(random), y = divided_exponential(random);
      if (power(x) + power(y) > one) continue;
      const bool x_is_larger = x <= y;   // true if 2^-x >= 2^-y
      const std::uint64_t ratio = power(x_is_larger ? y - x : x - y);
      const auto larger = static_cast<std::uint64_t>(((unsigned_128{one} << 32) + (one + ratio) / 2) / (one + ratio));
      return x_is_larger ? larger : one - larger;
    }
  }

  constexpr std::uint64_t by_rejection(rng& random) const noexcept {
    for (;;) {
      const std::uint64_t x = 1 + random.below(one - 1);
      const std::int64_t log_of_product = fixed_log2(x) + fixed_log2(one - x) + (std::int64_t{2} << 32);
      const std::uint64_t below_one = log_of_product < 0 ? static_cast<std::uint64_t>(-log_of_product) : 0;
      if (fixed_exponential(random) >= (unsigned_128{alpha_ - one} * below_one >> 32)) return x;
    }
  }

  std::uint64_t alpha_ = one;   // with 32 fraction bits
};

/// Options of a pair_rule.
struct pair_rule_options {
  double mixup_alpha = 0;                  ///< 0 disables mixup
  double cutmix_alpha = 0;                 ///< 0 disables cutmix, unless cutmix_minmax is set
  double switch_probability = 0.5;         ///< probability of cutmix, if both methods are enabled
  double probability = 1;                  ///< probability of mixing a pair
  std::array<double, 2> cutmix_minmax{};   ///< minimum and maximum side of the box, as fractions; {0, 0} if unused
};

/// How a pair of rows is mixed.
struct pair_mix {
  bool mixes = false;   ///< whether to mix the rows; if false, both stay unchanged
  row_mix row{};        ///< how to mix each row; the caller of draw() sets row_mix::partner
  float lambda = 1;     ///< weight of the row's own label
};

/// The rule by which pairs of rows are mixed.
class pair_rule {
 public:
  using options = pair_rule_options;

  /// Throws setup_error if an option is out of range, or if mixup_alpha, cutmix_alpha and cutmix_minmax are all 0.
  explicit pair_rule(const options& o);

  /// Returns whether pairs may be mixed by cutmix, which needs rows with a height and a width.
  bool cuts() const noexcept { return cutmix_.has_value(); }
  /// Draws how a pair of images of this size is mixed. Sides are at most 65535; without cutmix the size is ignored.
  pair_mix draw(rng& random, picture_size size) const noexcept;

 private:
  static void check(const options& o);
  row_mix cut(rng& random, std::uint64_t share, picture_size size) const noexcept;

  options options_;
  std::optional<beta_draw> mixup_, cutmix_;
};

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>

#ifndef MILLRACE_COMPILED
#include <millrace/image/plan/impl/pair_rule.inl>
#endif
