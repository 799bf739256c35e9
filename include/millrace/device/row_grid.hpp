// The common code of mix_rows on the host and on the GPU: grids, labels, and the checks of arguments. The grid of a row
// contains the dimensions of the row in a fixed order, which does not depend on the layout.
//
//   const mr::detail::row_grid grid = mr::detail::grid_of(pixels, mr::image_layout::nhwc);   // of [B, H, W, 3]
//   mr::detail::check_mix_kernel_rows(pixels, b.row_mixes());
//
// Errors: setup_error if the shapes of views do not match. Threads: pure functions; any thread.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/device/normalize_options.hpp>
#include <millrace/item/column/row_mix.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

/// Both labels of each mixed row, and the weight of label_a: three views of shape [B].
template <class Label>
struct mixed_labels {
  tensor_view<const Label, 1> label_a{}, label_b{};
  tensor_view<const float, 1> lambda{};
};

/// Options of dense_labels().
struct dense_labels_options {
  double smoothing = 0;   ///< 0 to 1, usually 0.1: weight divided among all classes; both labels share the rest
};

namespace detail {

/// The default axis order of three-dimensional rows: the order of `picture` for u8, and of `normalized_picture` for
/// other types.
template <mixable_element T>
inline constexpr image_layout usual_layout = std::is_same_v<T, std::uint8_t> ? image_layout::nhwc : image_layout::nchw;

/// The dimensions of a row as [planes, height, width, channels], for any layout.
struct row_grid {
  std::size_t planes = 1, height = 1, width = 1, channels = 1;

  std::size_t elements() const noexcept { return planes * height * width * channels; }
};

/// Returns the grid of a row with this shape. One-dimensional rows have height 1 and width 1.
template <std::size_t Rank>
row_grid grid_of(const std::array<std::size_t, Rank>& shape, image_layout layout) noexcept {
  static_assert(Rank >= 1 && Rank <= 3, "millrace: mix_rows supports rows of one to three dimensions");
  row_grid g;
  if constexpr (Rank == 1) {
    g.channels = shape[0];
  } else {
    const bool planar = Rank == 3 && layout == image_layout::nchw;
    g.height = shape[planar ? 1 : 0];
    g.width = shape[planar ? 2 : 1];
    if constexpr (Rank == 3) (planar ? g.planes : g.channels) = shape[planar ? 0 : 2];
  }
  return g;
}
/// Returns the grid of the rows of a batch.
template <class T, std::size_t N>
row_grid grid_of(const tensor_view<T, N>& rows, image_layout layout) noexcept {
  std::array<std::size_t, N - 1> shape;
  for (std::size_t axis = 1; axis < N; ++axis) shape[axis - 1] = rows.shape[axis];
  return grid_of(shape, layout);
}

/// Throws setup_error unless there is one row_mix for each row.
template <class T, std::size_t N>
void check_mix_kernel_rows(const tensor_view<T, N>& rows, const tensor_view<const row_mix, 1>& mixes) {
  if (rows.shape[0] != mixes.shape[0])
    throw setup_error("the arguments of mix_rows do not match: got rows of shape " + to_string(rows.shape) + " and " +
                          std::to_string(mixes.shape[0]) + " row_mixes, expected one row_mix for each row",
                      "Pass a column of a batch, and row_mixes() of the same batch");
}

/// Throws setup_error if the numbers of rows differ, if `dense` has no classes, or if the smoothing is not between 0
/// and 1.
template <class Label>
void check_mixed_labels(const mixed_labels<Label>& labels, const tensor_view<float, 2>& dense,
                        const dense_labels_options& o) {
  static_assert(std::is_integral_v<Label>, "millrace: dense_labels requires integer labels");
  const std::size_t rows = labels.label_a.shape[0];
  const bool fits = labels.label_b.shape[0] == rows && labels.lambda.shape[0] == rows && dense.shape[0] == rows;
  if (!fits || dense.shape[1] == 0)
    throw setup_error("the arguments of dense_labels do not match: got " + std::to_string(rows) +
                          " labels and a tensor of shape " + to_string(dense.shape) +
                          ", expected one row for each label, and at least one class in each row",
                      "Pass the labels of one batch, and a tensor of shape [rows, classes]");
  if (!(o.smoothing >= 0 && o.smoothing <= 1))
    throw setup_error(
        "the smoothing of dense labels is wrong: got " + std::to_string(o.smoothing) + ", expected 0 to 1",
        "Set smoothing to the weight that is divided among all classes, such as 0.1");
}

/// Computes the values of a row of dense labels. A class that is a label of the row has the value `off + weight *
/// rest`. Every other class has the value `off`.
struct dense_label_numbers {
  float off, rest;

  dense_label_numbers(double smoothing, std::size_t classes) noexcept
      : off(static_cast<float>(smoothing / static_cast<double>(classes))), rest(static_cast<float>(1 - smoothing)) {}

  /// Returns the value for class `k`. If both labels are equal, their weights are added.
  template <class Label>
  MILLRACE_BOTH_SIDES float of(Label k, Label label_a, Label label_b, float lambda) const noexcept {
    const float weight = label_a == label_b ? (k == label_a ? 1.0F : 0.0F)
                         : k == label_a     ? lambda
                         : k == label_b     ? 1 - lambda
                                            : 0.0F;
#ifdef __CUDA_ARCH__
    return fmaf(weight, rest, off);
#else
    return __builtin_fmaf(weight, rest, off);
#endif
  }
};

}   // namespace detail

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>
