// Mixes the rows of a delivered batch on the GPU, and computes dense labels there. This is the kernel version of
// mix_rows.hpp, for .cu files.
//
//   mr::mix_rows(b.get<&example::pixels>(), b.row_mixes(), b.stream());       // in place, once for each column
//   mr::dense_labels(b.mixed_labels(), targets, {.smoothing = 0.1}, b.stream());
//
// Use this header for flows with mix_rows({.deferred = true}). The flow draws the row_mixes and copies them to the
// device with the batch. Shapes, formulas and resulting bits are the same as in mix_rows.hpp. With nvcc's
// -use_fast_math, results below 2^-126 become 0.
// Each call queues one kernel and returns. A pair is read once and written once. The kernel is fastest if rows begin at
// multiples of 16 bytes; other alignments are also correct. A label that is not a class is ignored.
// All views must be in the memory of the current device. The views must stay valid until the stream has completed the
// kernel.
// The first call with a type loads its kernel, which may require milliseconds and wait for the device.
// Errors: setup_error if shapes do not match or a view is in other memory; io_error if a launch fails. Threads: any.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/device/kernel.cuh>
#include <millrace/device/row_grid.hpp>

#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Mixes the rows of a batch. A block processes a part of a pair. A unit is `Width` elements, which are loaded and
/// stored together.
template <class T, unsigned Width>
struct row_mix_kernel {
  static constexpr unsigned threads = 256, units_of_thread = 4, units_of_block = threads * units_of_thread;
  using unit = pack<T, Width>;

  T* rows;
  const row_mix* mixes;
  std::size_t elements;   // of a row
  unsigned units;         // of a row
  unsigned blocks_of_row;
  unsigned line, channels;   // elements of a line of pixels, and of a pixel
  unsigned height;           // lines of a plane

  MILLRACE_BOTH_SIDES void operator()(const auto& team) const {
    const unsigned row = team.block() / blocks_of_row, part = team.block() % blocks_of_row;
    const row_mix how = mixes[row];
    // The pair is processed once, at its first row.
    if (!how.changes() || static_cast<unsigned>(how.partner) <= row) return;
    team.each([&](unsigned t) {
      const unsigned first = part * units_of_block + t;
      // The loops are not unrolled, because unrolled loops would spill registers.
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
      for (unsigned k = 0; k < units_of_thread; ++k)
        if (first + k * threads < units) mix(how, row, first + k * threads);
    });
  }

 private:
  MILLRACE_BOTH_SIDES T* at(unsigned row, unsigned number) const {
    return rows + row * elements + std::size_t{number} * Width;
  }

  MILLRACE_BOTH_SIDES void mix(const row_mix& how, unsigned row, unsigned number) const {
    const auto partner = static_cast<unsigned>(how.partner);
    unit a = load_pack<Width>(at(row, number)), b = load_pack<Width>(at(partner, number));
    how.weight != row_mix::full_weight ? blend(how, a, b) : swap_box(how, number, a, b);
    store(row, how.next_copy, number, a);
    store(partner, mixes[partner].next_copy, number, b);
  }

  MILLRACE_BOTH_SIDES static void blend(const row_mix& how, unit& a, unit& b) {
    const mix_weights w(how.weight);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (unsigned i = 0; i < Width; ++i) {
      const T own = a.values[i], other = b.values[i];
      a.values[i] = mixed_element(own, other, w);
      b.values[i] = mixed_element(other, own, w);
    }
  }

  MILLRACE_BOTH_SIDES void swap_box(const row_mix& how, unsigned number, unit& a, unit& b) const {
    const unsigned begin = number * Width;   // a GPU divides 32-bit numbers faster
    unsigned y = begin / line % height, x = begin % line;
    const unsigned left = how.left * channels, right = how.right * channels;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (unsigned i = 0; i < Width; ++i) {
      const bool inside = x >= left && x < right && y >= how.top && y < how.bottom;
      const T own = a.values[i], other = b.values[i];
      a.values[i] = inside ? other : own;
      b.values[i] = inside ? own : other;
      const bool ends = ++x == line;
      x = ends ? 0 : x;
      y = !ends ? y : y + 1 == height ? 0 : y + 1;
    }
  }

  /// Writes a row, and the rows that are copies of it.
  MILLRACE_BOTH_SIDES void store(unsigned row, std::int32_t copies, unsigned number, const unit& values) const {
    store_pack(at(row, number), values);
    for (std::int32_t copy = copies; copy != row_mix::none; copy = mixes[copy].next_copy)
      store_pack(at(static_cast<unsigned>(copy), number), values);
  }
};

/// Computes dense labels: one number per thread.
template <class Label>
struct dense_labels_kernel {
  static constexpr unsigned threads = 256;

  const Label* label_a;
  const Label* label_b;
  const float* lambda;
  float* dense;
  std::size_t classes, count;
  dense_label_numbers make;

  MILLRACE_BOTH_SIDES void operator()(const auto& team) const {
    team.each([&](unsigned t) {
      const std::size_t i = std::size_t{team.block()} * threads + t;
      if (i >= count) return;
      const std::size_t row = i / classes;
      const auto k = static_cast<std::int64_t>(i % classes);
      dense[i] = make.of(k, static_cast<std::int64_t>(label_a[row]), static_cast<std::int64_t>(label_b[row]),
                         lambda[row]);
    });
  }
};

template <class T, unsigned Width>
void launch_row_mix(T* rows, const tensor_view<const row_mix, 1>& mixes, const row_grid& grid, stream_view stream) {
  using kernel = row_mix_kernel<T, Width>;
  kernel body{};
  body.rows = rows;
  body.mixes = mixes.data;
  body.elements = grid.elements();
  body.units = static_cast<unsigned>(body.elements / Width);
  body.blocks_of_row = (body.units + kernel::units_of_block - 1) / kernel::units_of_block;
  body.line = static_cast<unsigned>(grid.width * grid.channels);
  body.channels = static_cast<unsigned>(grid.channels);
  body.height = static_cast<unsigned>(grid.height);
  launch(body, {.blocks = static_cast<unsigned>(mixes.shape[0]) * body.blocks_of_row, .stream = stream});
}

}   // namespace detail

/// Queues the mixing of the rows of a batch in place, according to their row_mixes.
/// Throws setup_error unless there is one row_mix for each row and all views are in device memory; io_error if the
/// launch fails.
template <detail::mixable_element T, std::size_t N>
void mix_rows(const tensor_view<T, N>& rows, const tensor_view<const row_mix, 1>& mixes, stream_view stream,
              image_layout layout = detail::usual_layout<T>) {
  detail::check_mix_kernel_rows(rows, mixes);
  detail::check_on_device(rows, "mix_rows.hpp");
  detail::check_on_device(mixes, "mix_rows.hpp");
  const detail::row_grid grid = detail::grid_of(rows, layout);
  constexpr std::size_t most = std::size_t{1} << 31;
  if (grid.elements() >= most || mixes.shape[0] * (grid.elements() / 256 + 1) >= most)
    throw setup_error("the rows for mix_rows are too large: got shape " + to_string(rows.shape),
                      "Use rows of fewer than 2147483648 elements, and at most 2^39 in all");
  if (grid.elements() == 0) return;
  constexpr unsigned width = 16 / sizeof(T);
  const bool aligned = grid.elements() % width == 0 && detail::is_aligned(rows.data, 16);
  aligned ? detail::launch_row_mix<T, width>(rows.data, mixes, grid, stream)
          : detail::launch_row_mix<T, 1>(rows.data, mixes, grid, stream);
}

/// Queues the computation of the dense labels of mixed rows, f32 [B, classes].
/// Throws setup_error if the shapes do not match or a view is in host memory; io_error if the launch fails.
template <class Label>
void dense_labels(const mixed_labels<Label>& labels, const tensor_view<float, 2>& dense,
                  const dense_labels_options& options, stream_view stream) {
  detail::check_mixed_labels(labels, dense, options);
  detail::check_on_device(labels.label_a, "mix_rows.hpp");
  detail::check_on_device(labels.label_b, "mix_rows.hpp");
  detail::check_on_device(labels.lambda, "mix_rows.hpp");
  detail::check_on_device(dense, "mix_rows.hpp");
  using kernel = detail::dense_labels_kernel<Label>;
  const std::size_t count = dense.size();
  launch(kernel{labels.label_a.data, labels.label_b.data, labels.lambda.data, dense.data, dense.shape[1], count,
                detail::dense_label_numbers(options.smoothing, dense.shape[1])},
         {.blocks = static_cast<unsigned>((count + kernel::threads - 1) / kernel::threads), .stream = stream});
}

}}   // namespace millrace
