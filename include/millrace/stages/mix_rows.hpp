// mix_rows: mixes the rows of a batch in pairs, by mixup or cutmix. The stage mixup() uses only mixup, and the stage
// cutmix() uses only cutmix.
//
//   auto flow = mr::shards("train-{000..146}.tar") | mr::map(prepare)
//             | mr::batch<&example::pixels, &example::label>({.size = 256})
//             | mr::mix_rows<&example::pixels, &example::label>({.mixup_alpha = 0.8, .cutmix_alpha = 1.0});
//   mr::session run{std::move(flow)};
//   for (auto& b : run) {
//     auto [pixels, label_a, label_b, lambda] = b.columns();
//     train_step(pixels, label_a, label_b, lambda);   // lambda * CE(x, label_a) + (1 - lambda) * CE(x, label_b)
//   }
//
// This stage needs millrace/mix_rows.hpp. The first column contains the rows to mix, such as images, as u8, f16, bf16
// or f32. The second column contains their labels, which are numbers: get<&example::label>() is label_a. If a loss
// needs a weight for each class, mr::dense_labels() (device/mix_rows.hpp) computes these weights.
//
// Pairs: by default, each rank mixes its rows 0 and 1, 2 and 3, and so on. In general, rows p and p + stride of the
// global batch (the rows of all ranks in one step) are a pair if floor(p / stride) is even. The default stride is the
// number of ranks. Both rows of a pair have the same lambda and the same box (the rectangle that cutmix exchanges). A
// row without a partner is not changed: its lambda is 1, and its label_b is its own label. If one row of a pair is
// damaged (session_options::on_damage), neither row is changed.
//
// Random numbers depend on the seed, the epoch, the position of the pair's first row, and the stage. The numbers do not
// depend on the number of workers, and a resumed run draws the same numbers.
//
// Ranks: the resume point contains the stride. A resumed run uses this stride unless `.stride` is set. If the number of
// ranks divides the stride, the rows do not depend on the number of ranks. Otherwise, the session throws setup_error.
//
// Mixing: two workers may render the rows of a pair. The worker that finishes last mixes both rows, by the formulas of
// item/column/row_mix.hpp. With `.deferred`, the worker does not mix rows. Call mr::mix_rows(pixels, b.row_mixes()) to
// mix them on the host (device/mix_rows.hpp), or on a GPU with bit-identical results (device/mix_rows.cuh).
// Errors: setup_error for options out of range, and for cutmix of rows without a height and a width. setup_error for a
// stride that is not a multiple of the number of ranks.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/device/normalize_options.hpp>
#include <millrace/image/plan/pair_rule.hpp>
#include <millrace/item/column/mixed_columns.hpp>
#include <millrace/stages/batch.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of mix_rows().
struct mix_rows_options {
  double mixup_alpha = 0;            ///< mixup draws lambda from Beta(alpha, alpha); 1/1024 to 1024, or 0 for no mixup
  double cutmix_alpha = 0;           ///< the same for cutmix; clipping the box to the image then changes lambda
  double switch_probability = 0.5;   ///< probability of cutmix, if both alphas are set
  double probability = 1;            ///< probability that a pair is mixed
  /// Minimum and maximum side of the cutmix box, as fractions of the image's sides, as in timm. By default, alpha
  /// determines the sides. If cutmix_minmax is set, cutmix is used even if cutmix_alpha is 0.
  std::array<double, 2> cutmix_minmax{};
  std::optional<std::size_t> stride{};        ///< distance of a pair's rows in the global batch; default: world size
  std::optional<std::uint64_t> off_epoch{};   ///< from this epoch on, rows are not mixed
  /// Axis order of three-dimensional rows. Default: [H, W, C] for u8, and [C, H, W] for other types.
  std::optional<image_layout> layout{};
  bool deferred = false;   ///< if true, rows are not mixed; call mr::mix_rows(pixels, b.row_mixes())
};

/// Options of mixup().
struct mixup_options {
  double alpha = 1;         ///< lambda is distributed as Beta(alpha, alpha); 1/1024 to 1024
  double probability = 1;   ///< probability that a pair is mixed
  // The following members have the same meaning as in mix_rows_options.
  std::optional<std::size_t> stride{};
  std::optional<std::uint64_t> off_epoch{};
  bool deferred = false;
};

/// Options of cutmix().
struct cutmix_options {
  double alpha = 1;         ///< distribution Beta(alpha, alpha) of lambda before the box is clipped; 1/1024 to 1024
  double probability = 1;   ///< probability that a pair is mixed
  std::array<double, 2> minmax{};   ///< minimum and maximum side of the box: mix_rows_options::cutmix_minmax
  // The following members have the same meaning as in mix_rows_options.
  std::optional<std::size_t> stride{};
  std::optional<std::uint64_t> off_epoch{};
  std::optional<image_layout> layout{};
  bool deferred = false;
};

namespace detail {

/// The item type of a flow after mix_rows: represents a batch with these columns.
template <auto Pixels, auto Label, auto... Members>
struct mixed_batched {
  using batch_mark = void;
};

/// Defines the item type after mix_rows, and the compile-time mistake if mix_rows cannot process items of type `Item`.
template <auto Pixels, auto Label, class Item>
struct mixed_rows_item {
  using type = Item;
  static constexpr diagnose::mistake mistake = diagnose::mistake::rows_are_mixed_twice;
};
template <auto Pixels, auto Label, auto... Members>
struct mixed_rows_item<Pixels, Label, batched<Members...>> {
  using type = mixed_batched<Pixels, Label, Members...>;
  static constexpr diagnose::mistake mistake = [] {
    using diagnose::mistake;
    if (!(same_member<Pixels, Members>() || ...) || !(same_member<Label, Members>() || ...))
      return mistake::mixed_column_is_not_listed;
    if (!mixable_rows<member_type<Pixels>>) return mistake::rows_are_not_mixable;
    return mixable_label<member_type<Label>> ? mistake::none : mistake::label_is_not_a_number;
  }();
};

/// The result of mix_rows(), mixup() and cutmix().
template <auto Pixels, auto Label>
struct mix_rows_stage : stage_tag {
  using batch_mark = void;
  using mixes_rows_mark = void;
  static constexpr std::size_t added_columns = 2;
  mix_rows_options options{};

  template <class In>
  static constexpr diagnose::mistake mistake_on = mixed_rows_item<Pixels, Label, In>::mistake;
  template <class In>
  using out = typename mixed_rows_item<Pixels, Label, In>::type;

  /// Returns the rule that draws the random numbers of a pair.
  /// Throws setup_error for options out of range.
  pair_rule rule() const {
    return pair_rule({.mixup_alpha = options.mixup_alpha,
                      .cutmix_alpha = options.cutmix_alpha,
                      .switch_probability = options.switch_probability,
                      .probability = options.probability,
                      .cutmix_minmax = options.cutmix_minmax});
  }
};

}   // namespace detail

/// Returns the stage that mixes the rows of the column `Pixels` by mixup or cutmix. If both are enabled, each pair uses
/// one of them at random. The column `Label` contains the labels. Throws setup_error for options out of range.
template <auto Pixels, auto Label>
detail::mix_rows_stage<Pixels, Label> mix_rows(const mix_rows_options& options) {
  const detail::mix_rows_stage<Pixels, Label> stage{{}, options};
  static_cast<void>(stage.rule());
  return stage;
}

/// Returns the stage that mixes the rows of the column `Pixels`: x = lambda a + (1 - lambda) b. The column `Label`
/// contains the labels.
/// Throws setup_error for options out of range.
template <auto Pixels, auto Label>
auto mixup(const mixup_options& o = {}) {
  return mix_rows<Pixels, Label>({.mixup_alpha = o.alpha,
                                  .probability = o.probability,
                                  .stride = o.stride,
                                  .off_epoch = o.off_epoch,
                                  .deferred = o.deferred});
}

/// Returns the stage for these columns. The first column contains the rows, and the second column contains the labels.
template <auto Pixels, auto Label, auto... Others>
auto mixup(columns<Pixels, Label, Others...>, const mixup_options& o = {}) {
  return mixup<Pixels, Label>(o);
}

/// Returns the stage that swaps a box between two rows of the column `Pixels`. The column `Label` contains the labels.
/// Throws setup_error for options out of range.
template <auto Pixels, auto Label>
auto cutmix(const cutmix_options& o = {}) {
  return mix_rows<Pixels, Label>({.cutmix_alpha = o.alpha,
                                  .probability = o.probability,
                                  .cutmix_minmax = o.minmax,
                                  .stride = o.stride,
                                  .off_epoch = o.off_epoch,
                                  .layout = o.layout,
                                  .deferred = o.deferred});
}
/// Returns the stage for these columns. The first column contains the rows, and the second column contains the labels.
template <auto Pixels, auto Label, auto... Others>
auto cutmix(columns<Pixels, Label, Others...>, const cutmix_options& o = {}) {
  return cutmix<Pixels, Label>(o);
}
/// Returns the stage for these columns. The first column contains the rows, and the second column contains the labels.
template <auto Pixels, auto Label, auto... Others>
auto mix_rows(columns<Pixels, Label, Others...>, const mix_rows_options& options) {
  return mix_rows<Pixels, Label>(options);
}

}}   // namespace millrace
