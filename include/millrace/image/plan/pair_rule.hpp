// Draws how a pair of rows is mixed: the method (mixup or cutmix), the share (the weight of a row; its partner has the
// weight 1 - share), and for cutmix the box.
//
//   const mr::detail::pair_rule rule({.mixup_alpha = 0.8, .cutmix_alpha = 1.0, .switch_probability = 0.5});
//   const mr::detail::pair_mix how = rule.draw(random, {.width = 224, .height = 224});
//
// Order of the draws: whether to mix the pair, whether to use cutmix (only if both methods are enabled), and the share.
// For cutmix, the center of the box follows: first its column, then its row. With cutmix_minmax, the height, width, top
// and left of the box follow instead.
// Mixup: the share is Beta(alpha, alpha), rounded to 32768ths.
// Cutmix: the box extends floor(side * r / 2) to both sides of a center that is uniform in the image, where r is
// sqrt(1 - share). The box is clipped to the image. Torchvision's CutMix and timm's Mixup have the same rule, because
// floor(floor(side * r) / 2) = floor(side * r / 2). Box and share are drawn with integers.
// Cutmix with cutmix_minmax follows timm: height and width are uniform in
// [floor(minimum * side), floor(maximum * side)), and the box is inside the image. In both variants of cutmix, lambda
// is the part of the image outside the box.
// Source: torchvision/transforms/v2/_augment.py, timm/data/mixup.py.
// Errors: setup_error for options out of range. Threads: any; do not share an rng between threads.
#pragma once

#include <millrace/image/plan/beta_draw.hpp>
#include <millrace/image/plan/random_crop.hpp>
#include <millrace/item/column/row_mix.hpp>

#include <array>
#include <cstdint>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of a pair_rule.
struct pair_rule_options {
  double mixup_alpha = 0;    ///< 0 disables mixup
  double cutmix_alpha = 0;   ///< 0 disables cutmix, unless cutmix_minmax is set
  double switch_probability = 0.5;   ///< probability of cutmix, if both methods are enabled
  double probability = 1;            ///< probability of mixing a pair
  std::array<double, 2> cutmix_minmax{};   ///< minimum and maximum side of the box, as fractions; 0 disables this rule
};

/// How a pair of rows is mixed.
struct pair_mix {
  bool mixes = false;    ///< whether to mix the rows; if false, both stay unchanged
  row_mix row{};         ///< how to mix each row; its `partner` is not set
  float lambda = 1;      ///< weight of the row's own label
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

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/plan/impl/pair_rule.inl>
#endif
