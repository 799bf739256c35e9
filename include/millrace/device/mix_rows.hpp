// Mixes rows of a delivered batch on the host, after the stage mix_rows({.deferred = true}). Creates dense labels.
//
//   mr::mix_rows(b.get<&example::pixels>(), b.row_mixes());       // in place, once for each column
//   mr::tensor<float, 2> targets({b.size(), 1'000});
//   mr::dense_labels(b.mixed_labels(), targets.view(), {.smoothing = 0.1});
//
// Shapes: rows [B, H, W, C], [B, C, H, W], [B, H, W] or [B, N]; u8, f16, bf16 or f32. If mix_rows() gets no third
// argument, a view of four dimensions has the layout [B, H, W, C] for u8, and [B, C, H, W] for other types. Without
// `deferred`, the flow has already mixed the column of images: do not mix this column again. To mix another column,
// such as a label map under cutmix, pass the same row_mixes().
// Dense labels are f32 [B, K] for K classes. Each class gets the weight smoothing / K. The remaining weight, 1 -
// smoothing, is divided between the two labels in the ratio of lambda to 1 - lambda. The values equal those of timm's
// mixup_target(). Losses that allow several correct classes (BCE) need dense labels. A masked row is treated as a row
// with label 0.
// Every code path computes the same bits, including the kernels of mix_rows.cuh.
// Errors: setup_error if shapes do not match or a view is in device memory; data_error if a label is not a class.
// Threads: any; calls share no state.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/device/row_grid.hpp>
#include <millrace/item/column/row_mix.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Mixes the elements of two rows in place on the host, by mixup or cutmix.
//
//   const mr::detail::row_grid grid{.planes = 1, .height = 224, .width = 224, .channels = 3};    // [224, 224, 3]
//   mr::detail::mix_pixels(first, second, grid, how);
//
// The function reads and writes each of the two rows once. item/column/row_mix.hpp defines the formulas. Every CPU,
// compiler and code path computes the same bits. The code uses NEON, or AVX2 if the CPU supports it.
// Errors: none. Threads: any; calls share no state.

/// Mixes two sequences of `count` elements with each other, in place.
void mix_elements(std::uint8_t* first, std::uint8_t* second, std::size_t count, const mix_weights& w) noexcept;
void mix_elements(float* first, float* second, std::size_t count, const mix_weights& w) noexcept;
void mix_elements(f16* first, f16* second, std::size_t count, const mix_weights& w) noexcept;
void mix_elements(bf16* first, bf16* second, std::size_t count, const mix_weights& w) noexcept;

/// Swaps two sequences of bytes.
void swap_mixed_bytes(std::byte* first, std::byte* second, std::size_t count) noexcept;

/// Mixes two rows with each other, in place, according to the row_mix of the pair.
template <mixable_element T>
void mix_pixels(T* first, T* second, const row_grid& grid, const row_mix& how) noexcept {
  if (how.weight != row_mix::full_weight) return mix_elements(first, second, grid.elements(), mix_weights(how.weight));
  const std::size_t line = grid.width * grid.channels;
  const std::size_t begin = how.left * grid.channels, end = how.right * grid.channels;
  for (std::size_t plane = 0; begin < end && plane < grid.planes; ++plane)
    for (std::size_t y = how.top; y < how.bottom; ++y) {
      const std::size_t at = (plane * grid.height + y) * line + begin;
      swap_mixed_bytes(reinterpret_cast<std::byte*>(first + at), reinterpret_cast<std::byte*>(second + at),
                       (end - begin) * sizeof(T));
    }
}

}}}   // namespace millrace::detail

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

/// Mixes the rows of a batch in place, according to their row_mixes.
/// Throws setup_error if the numbers of rows and of row_mixes differ, or if a view is in device memory.
template <detail::mixable_element T, std::size_t N>
void mix_rows(const tensor_view<T, N>& rows, const tensor_view<const row_mix, 1>& mixes,
              image_layout layout = detail::usual_layout<T>) {
  detail::check_mix_kernel_rows(rows, mixes);
  const auto all = mixes.host();
  T* const begin = rows.host().data();
  const detail::row_grid grid = detail::grid_of(rows, layout);
  const std::size_t elements = grid.elements();
  for (std::size_t row = 0; row < all.size(); ++row) {
    const row_mix& how = all[row];
    // The pair is processed once, at its first row.
    if (how.changes() && static_cast<std::size_t>(how.partner) > row)
      detail::mix_pixels(begin + row * elements, begin + static_cast<std::size_t>(how.partner) * elements, grid, how);
  }
  for (std::size_t row = 0; row < all.size(); ++row)
    for (std::int32_t next = all[row].next_copy; next != row_mix::none;) {
      const auto copy = static_cast<std::size_t>(next);
      std::memcpy(begin + copy * elements, begin + row * elements, elements * sizeof(T));
      next = all[copy].next_copy;
    }
}

/// Computes the dense labels of mixed rows, f32 [B, classes].
/// Throws setup_error if the shapes do not match or a view is in device memory, and data_error if a label is not in [0,
/// classes).
template <class Label>
void dense_labels(const mixed_labels<Label>& labels, const tensor_view<float, 2>& dense,
                  const dense_labels_options& options = {}) {
  detail::check_mixed_labels(labels, dense, options);
  const auto a = labels.label_a.host(), b = labels.label_b.host();
  const auto lambda = labels.lambda.host();
  const auto numbers = dense.host();
  const std::size_t classes = dense.shape[1];
  const detail::dense_label_numbers make(options.smoothing, classes);
  for (std::size_t row = 0; row < a.size(); ++row) {
    for (const Label label : {a[row], b[row]})
      if (static_cast<std::int64_t>(label) < 0 || static_cast<std::uint64_t>(label) >= classes)
        throw data_error("a label is out of range for dense_labels: got " + std::to_string(label) + " in row " +
                             std::to_string(row) + ", expected 0 to " + std::to_string(classes - 1),
                         "Correct the number of classes, or the data");
    float* const to = numbers.data() + row * classes;
    for (std::size_t k = 0; k < classes; ++k) to[k] = make.off;
    for (const Label label : {a[row], b[row]})
      to[static_cast<std::size_t>(label)] = make.of(label, a[row], b[row], lambda[row]);
  }
}

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>

#ifndef MILLRACE_COMPILED
#include <millrace/device/impl/mix_rows.inl>
#endif
