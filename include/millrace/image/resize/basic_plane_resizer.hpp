// Implements plane_resizer (plane_resizer.hpp) with one set of kernels, such as the AVX2 kernels.
//
//   mr::detail::basic_plane_resizer<mr::detail::portable_plane_kernels> r;
//   r.start(job);                                   // then as in plane_resizer.hpp, which describes the results
//
// The resampler (plane_resampler.hpp) receives four source rows at a time. For each output row, it returns rows and
// their weights. A kernel computes the weighted sum of these rows. Errors, threads: see plane_resizer.hpp.
#pragma once

#include <millrace/image/resize/pixel_target.hpp>
#include <millrace/image/resize/plane_resampler.hpp>
#include <millrace/image/resize/resize_plan.hpp>
#include <millrace/image/resize/rgb_rows.hpp>
#include <millrace/image/resize/tap_table.hpp>
#include <millrace/simd/cpu_features.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// One image to render.
struct plane_resize {
  resize_plan plan{};
  bool fast = false;
  pixel_target target{};
};

template <class Kernels>
class basic_plane_resizer {
 public:
  /// `wide_vectors` allows registers of 512 bits. The pixels do not depend on `wide_vectors`.
  explicit basic_plane_resizer(bool wide_vectors = cpu_has_wide_vectors())
      : wide_vectors_(wide_vectors), main_(wide_vectors), chroma_(wide_vectors), color_(wide_vectors) {}

  void start(const plane_resize& job) {
    job_ = job;
    Kernels::taps::build(rows_, job.plan.rows);
    Kernels::taps::build(columns_, job.plan.columns);
    outputs_ = rows_.outputs();
    width_ = columns_.outputs();
    const std::size_t result_width = job.plan.transposed ? outputs_ : width_;
    row_pixels_ = job.target.row_pixels == 0 ? result_width : job.target.row_pixels;
    next_output_ = 0;
    const std::size_t padded = padded_columns(width_);
    if (line_.size() < 3 * padded) line_.resize(3 * padded);
    line_bytes_ = padded;
    const bool plain = job.target.type == pixel_type::u8 && !job.plan.transposed;
    straight_ = plain && padded == width_;
    streams_ = job.target.cold && !job.plan.transposed && is_aligned();
  }

  /// Renders the image. The planes must contain resize_source_box() of the plan.
  void render(const jpeg_planes& planes) {
    if (planes.components == 1) render_gray(planes);
    else if (job_.fast) render_fast(planes);
    else render_exact(planes);
    if (streams_) Kernels::plane_numbers::finish_streaming();
  }

  /// Prepares for source rows of RGBX (red, green, blue and an unused byte) with `width` pixels, beginning at source
  /// column `left`. The first row is rows().source_begin().
  void set_source(std::size_t left, std::size_t width) {
    input_pixels_ = width;
    input_bytes_ = width + guarded_resize_plane::slack_bytes;
    input_.resize(std::max(input_.size(), 12 * input_bytes_));
    pixels_.resize(std::max(pixels_.size(), 4 * input_bytes_));
    input_rows_ = 0;
    main_.start({.rows = rows_,
                 .columns = columns_,
                 .origin = left,
                 .first_row = rows_.source_begin(),
                 .planes = 3,
                 .flipped = job_.plan.columns.flipped});
  }
  bool wants_rows() const noexcept { return next_output_ < outputs_; }
  std::uint8_t* next_row() noexcept { return pixels_.data(); }

  void commit_row() noexcept {
    const std::size_t k = input_rows_++ % 4;
    std::uint8_t* const lines[3] = {input_line(0, k), input_line(1, k), input_line(2, k)};
    Kernels::plane_numbers::split(pixels_.data(), input_pixels_, lines);
    if (k != 3 && rows_.source_begin() + input_rows_ != rows_.source_end()) return;
    pushed_rows rows;
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t r = 0; r < 4; ++r) rows.rows[c][r] = input_line(c, std::min(r, k));
    main_.push(rows);
    for (; wants_rows() && main_.ready(next_output_); ++next_output_) emit_rgb();
    if (!wants_rows() && streams_) Kernels::plane_numbers::finish_streaming();
  }

  const tap_table& rows() const noexcept { return rows_; }
  const tap_table& columns() const noexcept { return columns_; }

 private:
  std::uint8_t* input_line(std::size_t channel, std::size_t k) noexcept {
    return input_.data() + (4 * channel + k) * input_bytes_;
  }

  std::size_t element_bytes() const noexcept {
    return job_.target.type == pixel_type::u8 ? 3 : job_.target.type == pixel_type::f32 ? 4 : 2;
  }

  /// Returns whether every line begins and ends at an address that is aligned for streaming stores.
  bool is_aligned() const noexcept {
    const std::size_t bytes = width_ * element_bytes();
    return bytes % 32 == 0 && row_pixels_ == width_ &&
           (width_ % columns_at_once == 0 || job_.target.type != pixel_type::u8) &&
           reinterpret_cast<std::uintptr_t>(job_.target.data) % 32 == 0;
  }

  void render_exact(const jpeg_planes& planes) {
    const auto down = static_cast<std::size_t>(planes.vertical_sampling);
    color_.start(planes, columns_.source_begin(), columns_.source_end());
    main_.start({.rows = rows_,
                 .columns = columns_,
                 .origin = color_.left(),
                 .first_row = rows_.source_begin() / down * down,
                 .planes = 3,
                 .flipped = job_.plan.columns.flipped});
    for (; next_output_ < outputs_; ++next_output_) {
      while (!main_.ready(next_output_)) {
        color_.compute(main_.next_row());
        pushed_rows pushed;
        for (std::size_t c = 0; c < 3; ++c) pushed.rows[c] = color_.rows(c);
        main_.push(pushed);
      }
      emit_rgb();
    }
  }

  void render_gray(const jpeg_planes& planes) {
    start_luma(planes);
    for (; next_output_ < outputs_; ++next_output_) {
      top_up_luma();
      main_.taps(next_output_, main_taps_);
      main_taps_.plane_stride = 0;
      emit([&](const row_output& to) { Kernels::plane_rows::blend_rgb(main_taps_, to); });
    }
  }

  void render_fast(const jpeg_planes& planes) {
    start_luma(planes);
    const auto half = [](int pixels) { return static_cast<std::size_t>((pixels + 1) / 2); };
    const tap_table* taps[2] = {&rows_, &columns_};
    if (planes.vertical_sampling == 2) {
      compose_chroma(rows_, half(planes.image_height), chroma_rows_);
      taps[0] = &chroma_rows_;
    }
    if (planes.horizontal_sampling == 2) {
      compose_chroma(columns_, half(planes.image_width), chroma_columns_);
      taps[1] = &chroma_columns_;
    }
    for (std::size_t c = 1; c < 3; ++c) plane_[c].set(planes.component[c]);
    chroma_top_ = static_cast<std::size_t>(planes.top / planes.vertical_sampling);
    chroma_.start({.rows = *taps[0],
                   .columns = *taps[1],
                   .origin = static_cast<std::size_t>(planes.left / planes.horizontal_sampling),
                   .first_row = taps[0]->source_begin(),
                   .planes = 2,
                   .flipped = job_.plan.columns.flipped,
                   .offset = -(128 << 7)});
    for (; next_output_ < outputs_; ++next_output_) {
      top_up_luma();
      while (!chroma_.ready(next_output_)) {
        pushed_rows pushed;
        for (std::size_t c = 0; c < 2; ++c) pushed.rows[c] = plane_[1 + c].four_rows(chroma_.next_row() - chroma_top_);
        chroma_.push(pushed);
      }
      main_.taps(next_output_, main_taps_);
      chroma_.taps(next_output_, chroma_taps_);
      emit([&](const row_output& to) { Kernels::plane_rows::blend_ycc(main_taps_, chroma_taps_, to); });
    }
  }

  void start_luma(const jpeg_planes& planes) {
    plane_[0].set(planes.component[0]);
    luma_top_ = static_cast<std::size_t>(planes.top);
    main_.start({.rows = rows_,
                 .columns = columns_,
                 .origin = static_cast<std::size_t>(planes.left),
                 .first_row = rows_.source_begin(),
                 .planes = 1,
                 .flipped = job_.plan.columns.flipped});
  }

  void top_up_luma() noexcept {
    while (!main_.ready(next_output_)) {
      pushed_rows pushed;
      pushed.rows[0] = plane_[0].four_rows(main_.next_row() - luma_top_);
      main_.push(pushed);
    }
  }

  void emit_rgb() noexcept {
    main_.taps(next_output_, main_taps_);
    emit([&](const row_output& to) { Kernels::plane_rows::blend_rgb(main_taps_, to); });
  }

  /// Writes one output row, next_output_, to its position in the target.
  template <class Blend>
  void emit(const Blend& blend) noexcept {
    const std::size_t row = job_.plan.rows.flipped ? outputs_ - 1 - next_output_ : next_output_;
    if (job_.target.type != pixel_type::u8) {
      blend({.bytes = line_.data(), .columns = width_, .planar = true, .plane_bytes = line_bytes_});
      if (job_.target.type == pixel_type::f32) put_numbers<float>(row);
      else if (job_.target.type == pixel_type::f16) put_numbers<f16>(row);
      else put_numbers<bf16>(row);
      return;
    }
    auto* pixels = static_cast<std::uint8_t*>(job_.target.data);
    if (straight_)
      return blend({.bytes = pixels + 3 * row * row_pixels_,
                    .columns = width_,
                    .streams = streams_,
                    .three_way_logic = three_way_logic_,
                    .wide_vectors = wide_vectors_});
    blend({.bytes = line_.data(), .columns = width_});
    if (!job_.plan.transposed) {
      std::memcpy(pixels + 3 * row * row_pixels_, line_.data(), 3 * width_);
      return;
    }
    for (std::size_t x = 0; x < width_; ++x) std::memcpy(pixels + 3 * (x * row_pixels_ + row), line_.data() + 3 * x, 3);
  }

  template <class T>
  void put_numbers(std::size_t row) noexcept {
    for (std::size_t c = 0; c < 3; ++c) {
      T* plane = static_cast<T*>(job_.target.data) + c * outputs_ * width_;
      const std::uint8_t* line = line_.data() + c * line_bytes_;
      const number_scale s{.scale = job_.target.scale[c], .bias = job_.target.bias[c], .streams = streams_};
      if (!job_.plan.transposed) Kernels::plane_numbers::write(line, width_, plane + row * width_, s);
      else
        for (std::size_t x = 0; x < width_; ++x)
          portable_pixel_numbers::write(line + x, 1, plane + x * outputs_ + row, s);
    }
  }

  const bool wide_vectors_;
  plane_resize job_;
  tap_table rows_, columns_, chroma_rows_, chroma_columns_;
  basic_plane_resampler<Kernels> main_, chroma_;
  basic_rgb_rows<typename Kernels::upsampling> color_;
  row_taps main_taps_, chroma_taps_;
  guarded_resize_plane plane_[3];
  std::size_t luma_top_ = 0, chroma_top_ = 0;
  std::size_t outputs_ = 0, width_ = 0, next_output_ = 0, line_bytes_ = 0, row_pixels_ = 0;
  bool straight_ = false, streams_ = false;
  bool three_way_logic_ = cpu_has_three_way_logic();
  std::size_t input_pixels_ = 0, input_bytes_ = 0, input_rows_ = 0;
  std::vector<std::uint8_t> line_, input_, pixels_;
};

struct portable_taps {
  static void build(tap_table& table, const plan_axis& axis) { table.build(axis); }
};

/// The kernels that every CPU can run.
struct portable_plane_kernels {
  using taps = portable_taps;
  using upsampling = portable_upsampling;
  using tap_columns = portable_tap_columns;
  using plane_rows = portable_row_blends;
  using plane_numbers = portable_pixel_numbers;
};

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
